//! Exhausted resources: processes, memory, inodes, disk space, stopped processes. Nothing panics or lies.
