//! Tests of [`SecretService`](crate::SecretService) against a real daemon, a scripted one, and what is not a bus at all.

mod gnome_keyring;
mod hostile_bus;
mod scripted_service;
