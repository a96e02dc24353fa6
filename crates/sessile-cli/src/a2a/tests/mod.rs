//! Against servers on this machine: the official SDK, and sockets that misbehave.
