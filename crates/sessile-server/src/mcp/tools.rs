//! Table of all tools: the API operation of each, and its description for models.

/// A tool, as far as the route does not say it.
pub(super) struct ToolEntry {
    pub(super) name: &'static str,
    /// The request, by its `operationId`.
    pub(super) operation: &'static str,
    pub(super) about: &'static str,
    /// Parameters with a fixed value.
    pub(super) always: &'static [(&'static str, &'static str)],
    /// Parameters that are not offered as arguments.
    pub(super) without: &'static [&'static str],
    /// Whether the tool deletes something.
    pub(super) destroys: bool,
    /// Whether the tool calls an upstream, if one is configured.
    pub(super) asks_upstream: bool,
}

/// Every tool, in the order in which they are listed.
pub(super) const TOOLS: &[ToolEntry] = &[
    tool("list_sessions", "listSessions", "Your sessions, newest first."),
    tool("start_session", "createSession", "Start a session; other tools take its id."),
    tool("show_session", "getSession", "A session, by id or name."),
    ToolEntry { destroys: true, ..tool("stop_session", "endSession", "End a session.") },
    tool("fork_session", "forkSession", "Start a session from another's messages."),
    tool("read_messages", "listMessages", "Messages, oldest first."),
    ToolEntry {
        without: &["reply", "busy", "wait_ms", "history"],
        ..tool("append_messages", "appendMessages", "Append messages atomically, unless the turn is held.")
    },
    ToolEntry {
        always: &[("reply", "true")],
        asks_upstream: true,
        ..tool(
            "send_message",
            "appendMessages",
            "Send messages {role, content} to the upstream model and append its reply.",
        )
    },
    tool("begin_turn", "beginTurn", "Acquire a session's turn."),
    tool("commit_turn", "commitTurn", "End a turn and append its messages atomically."),
    tool("renew_turn", "renewTurn", "Extend a turn."),
    tool("abandon_turn", "abandonTurn", "End a turn without a message."),
    tool("list_state", "listState", "Values of a session, by key."),
    tool("get_state", "getState", "One value, with its revision."),
    // What was there before is gone.
    ToolEntry { destroys: true, ..tool("set_state", "putState", "Set a JSON value in a session.") },
    ToolEntry { destroys: true, ..tool("delete_state", "deleteState", "Remove a value.") },
    tool("list_locks", "listLocks", "Locks that are held."),
    tool("acquire_lock", "takeLock", "Wait for a lock and acquire it."),
    tool("renew_lock", "renewLock", "Extend a lock."),
    tool("release_lock", "releaseLock", "Release a lock."),
];

/// A tool, with what most have in common.
const fn tool(name: &'static str, operation: &'static str, about: &'static str) -> ToolEntry {
    ToolEntry { name, operation, about, always: &[], without: &[], destroys: false, asks_upstream: false }
}

/// Descriptions of arguments whose names are not enough. The OpenAPI document has longer ones.
pub(super) const ARGUMENTS: &[(&str, &str)] = &[
    ("label", "KEY=VALUE"),
    ("cursor", "`next` of the previous page"),
    ("last", "instead of after and limit"),
    ("at", "last message to copy"),
    ("if_last", "only after this message"),
    ("if_revision", "expected; 0: must not exist"),
    ("busy", "behavior if held"),
];
