//! A guard, once set, is weakened only by a person who may: no command, undo or link is a way around it.
