"""The kinds of launcher, one module each, found by file name; each defines `LAUNCHER` and, if it leaves
something behind when killed, a reaper for its own records. They may import everything of
`crossover.launchers` but the registry."""
