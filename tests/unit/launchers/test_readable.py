"""What a container's user may read of the folders that are mounted for it."""

from __future__ import annotations

import os

import pytest

from crossover.errors import InputError
from crossover.launchers.containers import Mount
from crossover.launchers.readable import first_unreadable, require_readable, user_of

OWNER, GROUP = os.getuid(), os.getgid()
OTHER = OWNER + 1000


@pytest.fixture
def weights(tmp_path):
    """A folder that everybody may read."""
    folder = tmp_path / "weights"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "shard").write_bytes(b"x")
    for path, mode in ((folder, 0o755), (folder / "sub", 0o755), (folder / "sub" / "shard", 0o644)):
        path.chmod(mode)
    return folder


@pytest.mark.parametrize(
    ("name", "mode", "uid", "gid", "closed"),
    [
        ("sub/shard", 0o600, OTHER, OTHER, True),
        ("sub/shard", 0o600, OWNER, OTHER, False),
        ("sub/shard", 0o640, OTHER, GROUP, False),
        ("sub/shard", 0o640, OTHER, None, True),
        ("sub/shard", 0o604, OTHER, GROUP, True),  # the group may not, whatever others may
        ("sub", 0o754, OTHER, OTHER, True),  # may list it, and open nothing in it
        (".", 0o700, OTHER, OTHER, True),
    ],
)
def test_the_mode_decides_for_owner_group_and_others(weights, name, mode, uid, gid, closed):
    path = weights / name
    path.chmod(mode)
    try:
        assert first_unreadable(weights, uid, gid) == (path if closed else None)
    finally:
        path.chmod(0o755)


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ("", (0, 0)), ("root", (0, 0)), ("0:0", (0, 0)), ("1000:100", (1000, 100)), ("1000", (1000, None)),
        ("vllm", None), ("1000:users", None),
    ],
)  # fmt: skip
def test_users_of_containers(wanted, ids):
    assert user_of(wanted) == ids


def test_the_error_names_the_file_and_what_helps(weights):
    (weights / "sub" / "shard").chmod(0o600)
    mounts = [Mount(str(weights), "/models/target")]
    with pytest.raises(InputError) as error:
        require_readable(mounts, {"user": f"{OTHER}:{OTHER}"}, "")
    line = str(error.value)
    assert line.startswith(f"{weights}/sub/shard: the container's user (number {OTHER}, without privileges)")
    assert f"`chmod -R a+rX {weights}`" in line
    require_readable(mounts, {"user": f"{OWNER}:{GROUP}"}, "")
    require_readable(mounts, {"user": str(OTHER), "capabilities": ["CAP_DAC_READ_SEARCH"]}, "")
    require_readable(mounts, {}, "vllm")  # whoever that is
