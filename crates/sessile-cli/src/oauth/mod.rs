//! OAuth 2.
