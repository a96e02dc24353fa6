//! Answers of products whose clients say which of their targets was asked.

use serde_json::json;

use super::{LoopbackAnswer, LoopbackRequest};

/// Answers a request to the server of this name. Clients that have a token are answered by whose it is.
pub(super) fn answer(name: &str, request: &LoopbackRequest) -> LoopbackAnswer {
    // The login of Snowflake's client has a header of its own kind.
    if request.path == "/session/v1/login-request" {
        let message = format!("server-of-{name}");
        return LoopbackAnswer::json(
            json!({"success": false, "code": "390100", "message": message, "data": {}}),
        );
    }
    if let Some(user) = request.authorization.strip_prefix("Bearer token-of-") {
        return account(user);
    }
    if let Some((_, key)) = request.authorization.split_once("Credential=key.") {
        return buckets(key.split('/').next().unwrap_or_default());
    }
    if let Some(answer) = keystone(name, request) {
        return answer;
    }
    match request.method.as_str() {
        "POST" => {
            LoopbackAnswer { status: "403 Forbidden", kind: "text/plain", body: format!("upload-of-{name}") }
        }
        _ if request.path.starts_with("/files/md5/") => LoopbackAnswer {
            status: "200 OK",
            kind: "application/octet-stream",
            body: format!("data-of-{name}\n"),
        },
        _ => LoopbackAnswer {
            status: "200 OK",
            kind: "text/html",
            body: format!("<a href=\"file-of-{name}\">file-of-{name}</a>"),
        },
    }
}

/// Whom a token belongs to, in the words of Hugging Face, Linode and Databricks.
fn account(user: &str) -> LoopbackAnswer {
    let name = format!("user-of-{user}");
    LoopbackAnswer::json(json!({
        "type": "user", "name": name, "orgs": [], "auth": {"accessToken": {"displayName": user, "role": "read"}},
        "data": [{"username": name}], "page": 1, "pages": 1, "results": 1,
        "clusters": [{"cluster_id": "1", "cluster_name": name, "state": "RUNNING"}],
    }))
}

/// The list of buckets of an S3 account.
fn buckets(key: &str) -> LoopbackAnswer {
    let body = format!(
        "<?xml version='1.0'?><ListAllMyBucketsResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>\
         <Owner><ID>1</ID><DisplayName>o</DisplayName></Owner><Buckets><Bucket><Name>bucket-of-{key}</Name>\
         <CreationDate>2026-01-01T00:00:00.000Z</CreationDate></Bucket></Buckets></ListAllMyBucketsResult>"
    );
    LoopbackAnswer { status: "200 OK", kind: "application/xml", body }
}

/// OpenStack's service for logins.
fn keystone(name: &str, request: &LoopbackRequest) -> Option<LoopbackAnswer> {
    match (request.method.as_str(), request.path.trim_end_matches('/')) {
        ("GET", "/v3") => {
            let links = json!([{"rel": "self", "href": format!("http://{}/v3/", request.host)}]);
            Some(LoopbackAnswer::json(
                json!({"version": {"id": "v3.14", "status": "stable", "links": links}}),
            ))
        }
        ("POST", "/v3/auth/tokens") => Some(LoopbackAnswer {
            status: "201 Created",
            ..LoopbackAnswer::json(json!({"token": {
                "methods": ["password"], "user": {"id": format!("user-of-{name}"), "name": "u", "domain": {"id": "d", "name": "d"}},
                "issued_at": "2026-01-01T00:00:00.000000Z", "expires_at": "2099-01-01T00:00:00.000000Z", "catalog": [],
                "project": {"id": "p", "name": "p", "domain": {"id": "d", "name": "d"}}, "roles": [],
            }}))
        }),
        _ => None,
    }
}
