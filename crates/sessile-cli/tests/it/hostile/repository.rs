//! A hostile repository: links out of the project, borrowed trust, state planted for tools.
