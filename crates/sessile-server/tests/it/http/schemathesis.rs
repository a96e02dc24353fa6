//! Thousands of requests that somebody else thinks of, made from the OpenAPI document.

use std::path::PathBuf;
use std::process::Command;

use sessile_server::limits::RateLimit;

use super::{Client, with};

/// What is looked at in every answer. Waiting and refusing are not in a schema, so that valid data is always taken is not.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance,negative_data_rejection,unsupported_method,ignored_auth";

fn program() -> PathBuf {
    let entry = "test-tools/schemathesis/bin/schemathesis";
    let tested = std::env::current_exe().unwrap();
    let found = tested.ancestors().map(|dir| dir.join(entry)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("target/{entry} not found; scripts/test installs it"))
}

fn try_out(client: &Client, config: &str, args: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("schemathesis.toml"), config).unwrap();
    let header = format!("Authorization: Bearer {}", client.secret.as_ref().unwrap());
    let tried = Command::new(program())
        .args(["--no-color", "run", &format!("{}/openapi.json", client.base), "--header", &header])
        .args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--continue-on-failure"])
        .args(["--request-timeout", "20", "--generation-deterministic", "--warnings", "off"])
        .args(["--suppress-health-check", "all", "--max-examples"])
        .arg(std::env::var("SESSILE_TEST_EXAMPLES").unwrap_or_else(|_| "20".to_owned()))
        .args(args)
        .current_dir(dir.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&tried.stdout);
    assert!(tried.status.success(), "{told}\n{}", String::from_utf8_lossy(&tried.stderr));
    println!("{told}");
}

#[test]
fn generated_requests_conform_to_the_openapi_document() {
    let wide = RateLimit { rate: 1e9, burst: 1e9 };
    let server = with(|limits| {
        (limits.rate, limits.burst, limits.wait_ms) = (1e9, 1e9, 50);
        (limits.login_each, limits.login_all, limits.poll_each, limits.poll_all) = (wide, wide, wide, wide);
        limits.logins = i64::MAX;
    });
    let ann = server.user("ann");
    let id = ann.session().rsplit('/').next().unwrap().to_owned();
    let others = ["--exclude-operation-id", "endSession", "--exclude-operation-id", "followSession"];
    try_out(&ann, &format!("[parameters]\nsession = \"{id}\"\n"), &others);
    // Streams have no end: following is tested by itself.
    try_out(&ann, "", &["--include-path-regex", "session.$"]);
    let bad: Vec<_> = server.log().into_iter().filter(|line| line["status"].as_u64() >= Some(500)).collect();
    assert!(bad.is_empty(), "{bad:?}");
}
