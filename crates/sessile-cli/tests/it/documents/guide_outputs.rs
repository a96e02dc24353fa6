//! The console blocks of guides and references, played from the first to the last. `setup` has the commands that a page
//! assumes.

use crate::repository;

use super::console::{ConsolePage, assert_page};

#[test]
fn a2a_guide_prints_the_reference_output() {
    assert_page(&ConsolePage {
        path: "docs/guide/a2a.md",
        port: Some("8738"),
        setup: &[
            (
                "sessile message send research Ann",
                "sessile agent demo & sleep 1
                 sessile agent add research http://127.0.0.1:8738 --global &&
                 sessile message send research ask --session work &&
                 TASK=$(sessile run --session work -- printenv A2ACLI_TASK_ID) &&
                 sessile message send research Ann --session work",
            ),
            (
                "sessile message send research whoami",
                "echo token | sessile auth set --url http://localhost:8001 --bearer-token-stdin",
            ),
            ("sessile run --session work", "sessile message send research ask --session work --new"),
            ("sessile message send research \"$(printf", "sessile message send research Ann --session work"),
        ],
        typed: vec![("--task-id task-cec6e771bb83a0be", "--task-id $TASK".to_owned())],
        ..Default::default()
    });
}

#[test]
fn coding_agents_guide_prints_the_reference_output() {
    assert_page(&ConsolePage {
        path: "docs/guide/coding-agents.md",
        setup: &[("sessile run --session release", "sessile context create production --guard approval")],
        ..Default::default()
    });
}

/// The person who confirms the login in a browser is a request to the authorization server.
#[test]
fn credentials_guide_prints_the_reference_output() {
    testkit::require_tool("curl");
    let server = testkit::OidcServer::with(&testkit::OidcOptions {
        access_seconds: 3600,
        ..testkit::OidcOptions::default()
    });
    let issuer = server.issuer().to_owned();
    assert_page(&ConsolePage {
        path: "docs/guide/credentials.md",
        setup: &[
            (
                "sessile auth list",
                "mkdir -p ~/.config/gh && echo ghp_0123456789ab >token && chmod 600 token &&
                 printf 'github.com:\\n    oauth_token: ghp_0123456789ab\\n    user: ci-bot\\n' >~/.config/gh/hosts.yml &&
                 sessile auth set gh-bot --account ci-bot --secret-file token &&
                 sessile auth set registry --basic deploy --secret-file token &&
                 sessile auth set search --api-key @token --site https://search.example",
            ),
            (
                "sessile run --context staging -- sh",
                "sessile context create staging --env-credential GITHUB_TOKEN=gh-bot",
            ),
            ("sessile env --session web", "sessile session start --name web --context staging"),
            (
                "sessile run --context staging -- true",
                "sessile context edit staging --env-credential NPM_TOKEN=npm-publish",
            ),
            (
                "sessile run --context staging -- gh pr list",
                "sessile context edit staging --remove env.NPM_TOKEN &&
                 sessile auth set gh-bot --keep-secret --expires-at 2026-01-01T00:00:00Z",
            ),
            (
                "sessile auth login corp",
                "(
                   until grep -om1 '[A-Z]\\{4\\}-[A-Z]\\{4\\}' $OUTPUT >~/code; do sleep 0.1; done
                   curl -sS \"http://127.0.0.1:9777/decide?user_code=$(cat ~/code)&account=ann\"
                 ) &",
            ),
            (
                "SESSILE_TOKEN_FILE=token sessile auth status",
                "sessile auth clear corp --yes; sessile auth set gh-bot --keep-secret --expires-at never",
            ),
            (
                "sessile auth logout gh-bot",
                "sessile run --session web -- sh -c 'touch ~/started; exec sleep 60' &
                 until [ -e ~/started ]; do sleep 0.05; done",
            ),
            (
                "sessile run --context staging -- make",
                "sessile auth set gh-bot --secret-file token && echo a long phrase >phrase && chmod 600 phrase &&
                 sessile auth rekey --to passphrase --passphrase-file phrase",
            ),
        ],
        typed: vec![
            ("http://127.0.0.1:9777", issuer),
            ("--client-id cli", format!("--client-id {}", testkit::OidcServer::PUBLIC_CLIENT)),
        ],
        ..Default::default()
    });
}

#[test]
fn history_guide_prints_the_reference_output() {
    assert_page(&ConsolePage {
        path: "docs/guide/history-and-undo.md",
        setup: &[(
            "sessile context delete",
            "sessile context create staging &&
             for number in 1 2 3 4 5 6 7 8 9; do sessile config set env.NUMBER $number --global || exit; done",
        )],
        ..Default::default()
    });
}

#[test]
fn locks_guide_prints_the_reference_output() {
    assert_page(&ConsolePage {
        path: "docs/guide/locks.md",
        setup: &[("sessile lock acquire deploy", "sessile lock run deploy -- true")],
        ..Default::default()
    });
}

#[test]
fn probe_guide_prints_the_reference_form() {
    testkit::require_tool("python3");
    let server = repository::root().join("examples/mixed-up-agent/server.py");
    assert_page(&ConsolePage {
        path: "docs/guide/probe.md",
        port: Some("8000"),
        setup: &[("sessile probe", "sleep 1")],
        typed: vec![("examples/mixed-up-agent/server.py", server.display().to_string())],
        is_random: true,
    });
}

#[test]
fn scripts_guide_prints_the_reference_output() {
    assert_page(&ConsolePage {
        path: "docs/guide/scripts-and-agents.md",
        setup: &[("sessile context show", "sessile context create production")],
        ..Default::default()
    });
}

#[test]
fn sessions_guide_prints_the_reference_output() {
    assert_page(&ConsolePage {
        path: "docs/guide/sessions.md",
        setup: &[("sessile session state set cursor 41", "sessile session start --name web")],
        ..Default::default()
    });
}

/// The helper of the page is taken from its last block of Python.
#[test]
fn vault_helper_page_prints_the_reference_output() {
    testkit::require_tool("python3");
    assert_page(&ConsolePage {
        path: "docs/reference/vault-helper.md",
        setup: &[
            (
                "sessile --set vault.backend=helper --set vault.helper=/opt/sealed",
                "cat >~/sealed <<'END'\n#!/bin/sh\necho '{\"error\":\"the store is sealed\"}'\nEND\nchmod +x ~/sealed",
            ),
            (
                "echo",
                "sed -n '/^```python/,/^```/p' VAULT_HELPER_PAGE | sed '1d;$d' >sessile-vault-files &&
                 chmod +x sessile-vault-files && echo secret >token",
            ),
        ],
        typed: vec![
            (
                "VAULT_HELPER_PAGE",
                repository::root().join("docs/reference/vault-helper.md").display().to_string(),
            ),
            ("/opt/sealed", "$HOME/sealed".to_owned()),
        ],
        ..Default::default()
    });
}

/// Every page with a console block is played, here or as a tutorial.
#[test]
fn every_page_with_a_console_is_played() {
    let sources = ["guide_outputs", "tutorials"]
        .map(|name| repository::read(format!("crates/sessile-cli/tests/it/documents/{name}.rs")))
        .concat();
    let mut found = 0;
    for file in repository::files(".md") {
        if repository::read(&file).contains("```console") {
            assert!(sources.contains(&format!("\"{}\"", file.display())), "no test plays {}", file.display());
            found += 1;
        }
    }
    assert!(found > 10, "the search has gone blind: {found} pages");
}
