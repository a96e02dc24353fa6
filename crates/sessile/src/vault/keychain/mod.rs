//! The desktop's keychain, by the Secret Service of the user's D-Bus session.
