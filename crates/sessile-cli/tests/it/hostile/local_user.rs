//! Other local users: shared runtime directories, links and files that they own.
