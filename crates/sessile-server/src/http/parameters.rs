//! Parameters of requests besides the body, as the OpenAPI document describes them.

use serde_json::{Value, json};
use sessile_wire::service::limits::{
    DEFAULT_PAGE_ITEMS, DEFAULT_WAIT_MS, MAX_IDEMPOTENCY_KEY, MAX_INTEGER, MAX_KEY, MAX_PAGE_ITEMS,
    MAX_REASON, MAX_SESSION_QUERY, MAX_WAIT_MS,
};

/// A parameter of a request.
#[derive(Debug)]
pub(crate) struct Parameter {
    /// Name in the request.
    pub(crate) name: &'static str,
    pub(crate) location: Location,
    pub(crate) is_required: bool,
    pub(crate) schema: fn() -> Value,
    /// Name in the document, where names of different locations must differ.
    key: &'static str,
    description: &'static str,
}

/// Part of the request that a parameter is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Path,
    Query,
    Header,
}

impl Parameter {
    const fn query(name: &'static str, description: &'static str, schema: fn() -> Value) -> Self {
        Parameter { name, location: Location::Query, is_required: false, schema, key: name, description }
    }

    const fn path(
        key: &'static str,
        name: &'static str,
        description: &'static str,
        schema: fn() -> Value,
    ) -> Self {
        Parameter { name, location: Location::Path, is_required: true, schema, key, description }
    }

    const fn header(
        key: &'static str,
        name: &'static str,
        description: &'static str,
        schema: fn() -> Value,
    ) -> Self {
        Parameter { name, location: Location::Header, is_required: false, schema, key, description }
    }

    /// Entry in the document's parameters: key and description.
    pub(super) fn documented(&self) -> (String, Value) {
        let location = match self.location {
            Location::Path => "path",
            Location::Query => "query",
            Location::Header => "header",
        };
        let mut parameter = json!({ "name": self.name, "in": location, "description": self.description });
        if self.is_required {
            parameter["required"] = json!(true);
        }
        parameter["schema"] = (self.schema)();
        (self.key.to_owned(), parameter)
    }

    /// Reference to the entry in the document.
    pub(super) fn reference(&self) -> Value {
        json!({ "$ref": format!("#/components/parameters/{}", self.key) })
    }
}

/// Parameter of a route's path, by its name in the pattern.
pub(super) fn in_path(name: &str) -> Option<&'static Parameter> {
    [&SESSION_PATH, &KEY_PATH, &NAME_PATH, &TOKEN_PATH].into_iter().find(|parameter| parameter.name == name)
}

fn integer(least: i64, most: i64) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most })
}

fn integer_or(least: i64, most: i64, default: i64) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most, "default": default })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn text_up_to(most: usize) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": most })
}

pub(super) const LIMIT: Parameter = Parameter::query("limit", "Maximum number of items.", || {
    integer_or(1, MAX_PAGE_ITEMS, DEFAULT_PAGE_ITEMS)
});

pub(super) const CURSOR: Parameter =
    Parameter::query("cursor", "Cursor of the page: `next` of the previous page.", text);

pub(super) const LIVE: Parameter = Parameter::query(
    "live",
    "Whether to leave out sessions that have ended or expired.",
    || json!({ "type": "boolean", "default": true }),
);

pub(super) const LABEL: Parameter = Parameter::query(
    "label",
    "Label that the sessions must have, as KEY=VALUE.",
    || json!({ "type": "string", "pattern": "^[^=]+=.*$" }),
);

pub(super) const REASON: Parameter = Parameter::query(
    "reason",
    "Reason for the end.",
    || json!({ "type": "string", "minLength": 1, "maxLength": MAX_REASON, "default": "ended" }),
);

pub(super) const AFTER: Parameter =
    Parameter::query("after", "Start after this number.", || integer_or(0, MAX_INTEGER, 0));

pub(super) const LAST: Parameter =
    Parameter::query("last", "Number of last messages, instead of `after` and `limit`.", || {
        integer(1, MAX_PAGE_ITEMS)
    });

pub(super) const TOKEN: Parameter = Parameter {
    is_required: true,
    ..Parameter::query("token", "Fencing token of the lock.", || integer(0, MAX_INTEGER))
};

pub(super) const REPLY: Parameter = Parameter::query(
    "reply",
    "Acquire the turn, ask the upstream with the session's messages, and append its reply with the new messages.",
    || json!({ "type": "boolean", "default": false }),
);

pub(super) const BUSY: Parameter = Parameter::query(
    "busy",
    "With `reply`: behavior if the turn is held.",
    || json!({ "type": "string", "enum": ["enqueue", "reject", "interrupt"], "default": "enqueue" }),
);

pub(super) const WAIT_MS: Parameter =
    Parameter::query("wait_ms", "With `reply`: longest wait for the turn, in milliseconds.", || {
        integer_or(0, MAX_WAIT_MS, DEFAULT_WAIT_MS)
    });

pub(super) const HISTORY: Parameter =
    Parameter::query("history", "With `reply`: number of last messages that the upstream gets.", || {
        integer_or(0, MAX_PAGE_ITEMS, MAX_PAGE_ITEMS)
    });

pub(super) const SESSION: Parameter =
    Parameter::query("session", "Id of the session that the entries are about.", || {
        text_up_to(MAX_SESSION_QUERY)
    });

pub(super) const SINCE_MS: Parameter =
    Parameter::query("since_ms", "Earliest time, in milliseconds since 1970.", || integer(0, MAX_INTEGER));

const SESSION_PATH: Parameter = Parameter::path("session-path", "session", "Id of the session.", text);

const KEY_PATH: Parameter = Parameter::path("key-path", "key", "Key of the value.", || text_up_to(MAX_KEY));

const NAME_PATH: Parameter =
    Parameter::path("name-path", "name", "Name of the lock.", || text_up_to(MAX_KEY));

const TOKEN_PATH: Parameter = Parameter::path(
    "token-path",
    "token",
    "Fencing token of the turn.",
    || json!({ "type": "integer", "format": "int64", "minimum": 0, "maximum": MAX_INTEGER }),
);

pub(super) const IDEMPOTENCY_KEY: Parameter = Parameter::header(
    "idempotency-key",
    "Idempotency-Key",
    "Idempotency key: the same request with the same key is carried out once, however often it is sent.",
    || json!({ "type": "string", "minLength": 1, "maxLength": MAX_IDEMPOTENCY_KEY, "pattern": "^[!-~]+$" }),
);

pub(super) const IF_MATCH: Parameter = Parameter::header(
    "if-match",
    "If-Match",
    "ETag that the resource must have.",
    || json!({ "type": "string", "pattern": "^\"[1-9][0-9]{0,17}\"$" }),
);

pub(super) const IF_NONE_MATCH: Parameter = Parameter::header(
    "if-none-match",
    "If-None-Match",
    "For a read: ETag that the client has already. For a write: `*` if the resource must not exist.",
    text,
);

pub(super) const LAST_EVENT_ID: Parameter = Parameter::header(
    "last-event-id",
    "Last-Event-ID",
    "Number of the last event that the client received.",
    || json!({ "type": "string", "pattern": "^[0-9]{1,15}$" }),
);
