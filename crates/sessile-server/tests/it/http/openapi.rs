//! The OpenAPI document.

use std::path::Path;

use serde_json::Value;

use super::server;

#[test]
fn served_openapi_document_equals_the_reference() {
    let document = sessile_server::openapi::document();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, &document).unwrap();
    }
    let how = "write it anew: UPDATE_REFERENCE=1 cargo test -p sessile-server --test it openapi";
    assert!(std::fs::read_to_string(&path).unwrap() == document, "{} has changed; {how}", path.display());
    assert_eq!(server().nobody().get("/openapi.json").text, document);
}

#[test]
fn openapi_document_has_every_operation_and_resolves_references() {
    let document: Value = serde_json::from_str(&sessile_server::openapi::document()).unwrap();
    let mut ids = std::collections::BTreeSet::new();
    for methods in document["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(!id.is_empty() && ids.insert(id.to_owned()), "{id}");
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{id}");
        }
    }
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(key, value)| match value {
                Value::String(to) if key == "$ref" => found.push(to.clone()),
                value => walk(value, found),
            }),
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            _ => {}
        }
    }
    let mut references = Vec::new();
    walk(&document, &mut references);
    for reference in &references {
        assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
    }
    for kind in ["schemas", "parameters"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            let used = format!("#/components/{kind}/{name}");
            assert!(references.contains(&used), "{used} is used nowhere");
        }
    }
}

#[test]
fn every_operation_has_a_route_and_other_methods_are_refused() {
    let server = server();
    let ann = server.user("ann");
    let document = ann.get("/openapi.json").ok(200);
    for (path, methods) in document["paths"].as_object().unwrap() {
        let concrete = path.replace("{session}", "0199aaaa-0000-7000-8000-00000000dead");
        let concrete = concrete.replace("{token}", "1").replace("{key}", "k").replace("{name}", "n");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let body = ["POST", "PUT", "PATCH"].contains(&method).then_some("{}");
            let reply = ann.send(method, &concrete, &[], body);
            let is_there = methods.get(method.to_lowercase()).is_some();
            assert_eq!(reply.status != 405, is_there, "{method} {path}: {reply:?}");
        }
    }
    ann.get("/v1/nothing").refused(404, "USAGE");
    ann.send("PATCH", "/v1/sessions", &[], Some("{}")).refused(405, "USAGE");
}

#[test]
fn titles_fit_the_status_and_health_is_found() {
    let server = server();
    let ann = server.user("ann");
    for (path, detail) in [
        ("/health", "health is at /healthz"),
        ("/ready", "readiness is at /readyz"),
        ("/", "/openapi.json"),
        ("/v1/nothing", "path not found"),
    ] {
        let reply = ann.get(path);
        reply.refused(404, "USAGE");
        assert_eq!(reply.json()["title"], "Path not found.", "{reply:?}");
        assert!(reply.json()["detail"].as_str().unwrap().contains(detail), "{reply:?}");
    }
    let secret = ann.secret.as_deref().unwrap();
    let head = format!("POST /v1/sessions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n");
    let request =
        format!("{head}Content-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}");
    let reply = server.raw(request.as_bytes());
    assert!(reply.starts_with("HTTP/1.1 415") && reply.contains("Unsupported media type."), "{reply}");
    let reply = ann.send("PATCH", "/v1/sessions", &[], Some("{}"));
    assert_eq!(reply.json()["title"], "Method not allowed.");
}
