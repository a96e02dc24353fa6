//! `sessile config show`, `list` and `path`: every value with its origin and what it shadows.

use testkit::{Call, Home};

use crate::home;

/// A home in which every layer says the same setting.
fn layered() -> Home {
    let home = home();
    home.write("etc/config.toml", "lock-timeout = \"1s\"\n");
    home.write(".config/sessile/config.toml", "# mine\nlock-timeout = \"2s\"\n");
    home.write(".config/sessile/contexts/staging.toml", "[settings]\n\n\nlock-timeout = \"3s\"\n");
    home.write("project/.sessile/config.toml", "lock-timeout = \"4s\"\n");
    home.write("project/.sessile/local.toml", "\n\nlock-timeout = \"5s\"\n");
    home
}

fn in_every_layer(home: &Home, args: &[&str]) -> Call {
    let call: Call = home.call(args);
    call.cwd("project")
        .env("SESSILE_CONTEXT", "staging")
        .env("SESSILE_LOCK_TIMEOUT", "6s")
        .arg("--set=lock-timeout=7s")
}

#[test]
fn each_layer_has_file_line_and_shadowed_values() {
    let done = in_every_layer(&layered(), &["config", "show", "lock-timeout", "--source"]).ok();
    insta::assert_snapshot!(done.told(), @"
    exit 0
    --- stdout
    KEY           VALUE  ORIGIN
    lock-timeout  7s     flag --set
                  6s     environment SESSILE_LOCK_TIMEOUT (shadowed)
                  5s     directory ~/project/.sessile/local.toml:3 (shadowed)
                  4s     directory ~/project/.sessile/config.toml:1 (shadowed)
                  3s     context staging ~/.config/sessile/contexts/staging.toml:4 (shadowed)
                  2s     user ~/.config/sessile/config.toml:2 (shadowed)
                  1s     system ~/etc/config.toml:1 (shadowed)
                  5s     default (shadowed)
    --- stderr
    ");
}

#[test]
fn in_json_each_origin_has_layer_path_and_line() {
    let home = layered();
    let items = in_every_layer(&home, &["config", "show", "lock-timeout", "-ojson"]).ok().json();
    let item = &items[0];
    assert_eq!(item["value"], "7s");
    assert_eq!(item["origin"], serde_json::json!({ "layer": "flag", "name": "--set" }));
    let shadows = item["shadows"].as_array().unwrap();
    let layers: Vec<&str> =
        shadows.iter().map(|shadow| shadow["origin"]["layer"].as_str().unwrap()).collect();
    assert_eq!(layers, ["environment", "directory", "directory", "context", "user", "system", "default"]);
    assert_eq!(shadows[1]["origin"]["path"], home.path("project/.sessile/local.toml").to_str().unwrap());
    assert_eq!(shadows[1]["origin"]["line"], 3);
    assert_eq!(shadows[3]["origin"]["name"], "staging");
    assert_eq!(shadows[3]["origin"]["line"], 4);
}

#[test]
fn effective_adds_the_default_values() {
    let home = home();
    home.write(".config/sessile/config.toml", "color = \"never\"\n[session]\nidle = \"1h\"\n");
    insta::assert_snapshot!(home.call(&["config", "show"]).ok().told(), @"
    exit 0
    --- stdout
    KEY           VALUE
    color         never
    session.idle  1h
    --- stderr
    ");
    insta::assert_snapshot!(home.call(&["config", "show", "--effective", "--source"]).ok().told(), @"
    exit 0
    --- stdout
    KEY                 VALUE     ORIGIN
    chat.opener         xdg-open  default
    chat.theme          auto      default
    color               never     user ~/.config/sessile/config.toml:1
                        auto      default (shadowed)
    conversation.keep   90d       default
    isolate             env       default
    lock-timeout        5s        default
    lock-ttl            60s       default
    output              text      default
    session.idle        1h        user ~/.config/sessile/config.toml:3
                        2h        default (shadowed)
    session.max         8h        default
    session.max-action  end       default
    vault.backend       auto      default
    vault.unlock        15m       default
    --- stderr
    ");
}

#[test]
fn untrusted_values_are_listed_without_effect() {
    let home = home();
    home.write("project/.sessile/config.toml", "context = \"prod\"\n");
    let show = |args: &[&str]| home.call(args).cwd("project").ok();
    insta::assert_snapshot!(show(&["config", "show", "--source"]).told(), @"
    exit 0
    --- stdout
    KEY      VALUE  ORIGIN
    context  prod   directory ~/project/.sessile/config.toml:1 (ignored: not trusted)
    --- stderr
    warning: project ~/project is not trusted; ignoring its value of context
    hint: review the project, then trust it: sessile trust ~/project
    ");
    let items = show(&["config", "show", "-ojson"]).json();
    assert_eq!(items[0]["value"], serde_json::Value::Null);
    assert_eq!(items[0]["ignored"][0]["value"], "prod");
    assert_eq!(items[0]["ignored"][0]["ignored"], "untrusted");
}

#[test]
fn a_context_cannot_select_a_context() {
    let home = home();
    home.write(".config/sessile/contexts/a.toml", "[settings]\ncontext = \"b\"\n");
    let done = home.call(&["config", "show", "context", "--source", "--context", "a"]).ok();
    insta::assert_snapshot!(done.told(), @"
    exit 0
    --- stdout
    KEY      VALUE  ORIGIN
    context  a      flag --context
             b      context a ~/.config/sessile/contexts/a.toml:2 (ignored: not a setting for this file)
    --- stderr
    ");
}

#[test]
fn the_list_shows_every_setting_with_its_kind() {
    insta::assert_snapshot!(home().call(&["config", "describe"]).ok().told(), @"
    exit 0
    --- stdout
    KEY                        KIND      DEFAULT   ABOUT
    agents.*.allow-http        bool      -         Allow plain http to a named agent
                                                   on another machine, without a
                                                   credential.
    agents.*.client-cert-file  text      -         PEM file with the client
                                                   certificate for a named agent
                                                   (mTLS).
    agents.*.client-key-file   text      -         PEM file with the private key of
                                                   the client certificate.
    agents.*.credential        text      -         The credential that a named agent
                                                   gets.
    agents.*.headers           list      -         Headers of every request to a
                                                   named agent: NAME: VALUE, or
                                                   NAME: @FILE for a secret.
    agents.*.url               text      -         The URL of a named agent.
    chat.opener                text      xdg-open  Program that opens artifacts from
                                                   the chat.
    chat.theme                 choice    auto      Colors of the full-screen chat;
                                                   auto is dark, or none without
                                                   color.
    color                      choice    auto      When to color the output.
    context                    context   -         Default context.
    conversation.keep          duration  90d       How long a conversation is kept
                                                   after its last use.
    credential                 text      -         Default credential.
    env.*                      text      -         A variable for commands that are
                                                   run.
    expect-context             context   -         Expected context: warn if another
                                                   context is used.
    isolate                    choice    env       Isolation level of commands.
    lock-timeout               duration  5s        Timeout for locks; 0 does not
                                                   wait.
    lock-ttl                   duration  60s       Lease of a server's lock; renewed
                                                   while the command runs.
    message.agent              text      -         The agent of messages that name
                                                   none.
    output                     choice    text      Output format.
    passthrough                list      -         Variables that commands keep even
                                                   if they override the context.
    server                     url       -         URL of the session service.
    session.idle               duration  2h        How long a session may be idle
                                                   before it expires.
    session.max                duration  8h        Maximum lifetime of a session.
    session.max-action         choice    end       Action on running commands at the
                                                   maximum lifetime of their
                                                   session.
    token                      secret    -         Bearer token for one call;
                                                   allowed only in a --config file,
                                                   never stored or printed.
    tools.*.strict             bool      -         Whether copies of a bound tool's
                                                   files contain only the bound
                                                   targets; default: the context's
                                                   value.
    tools.also                 list      -         Isolate these tools too, which
                                                   are shared by default.
    tools.except               list      -         Isolate all tools but these.
    tools.only                 list      -         Isolate only these tools.
    vault.backend              choice    auto      Vault backend; auto uses the
                                                   desktop's keychain if available,
                                                   else an encrypted file.
    vault.helper               text      -         Program of the helper backend: an
                                                   absolute path, or WORD for
                                                   NAME-vault-WORD in PATH.
    vault.key-file             text      -         Key file of the vault, instead of
                                                   the one beside it.
    vault.unlock               duration  15m       How long the vault stays unlocked
                                                   after the passphrase.
    --- stderr
    ");
}

#[test]
fn paths_are_printed_by_precedence() {
    let home = layered();
    insta::assert_snapshot!(home.call(&["config", "path"]).cwd("project").ok().told(), @"
    exit 0
    --- stdout
    LAYER      EXISTS  PATH
    directory  yes     ~/project/.sessile/local.toml
    directory  yes     ~/project/.sessile/config.toml
    user       yes     ~/.config/sessile/config.toml
    system     yes     ~/etc/config.toml
    --- stderr
    ");
    assert_eq!(
        home.call(&["config", "path", "--global"]).ok().stdout(),
        format!("{}\n", home.path(".config/sessile/config.toml").display())
    );
}

#[test]
fn an_unknown_key_is_warned_of_with_the_nearest_one() {
    let home = home();
    home.write(".config/sessile/config.toml", "\n  lock-timout = \"9s\"\n");
    insta::assert_snapshot!(home.call(&["config", "get", "lock-timeout"]).ok().told(), @r#"
    exit 0
    --- stdout
    5s
    --- stderr
    warning: ~/.config/sessile/config.toml:2:3: setting "lock-timout" not found
    hint: did you mean "lock-timeout"?
    "#);
    let done = home.call(&["config", "get", "lock-timeout", "-ojson"]).ok();
    let warning: serde_json::Value = serde_json::from_str(&done.stderr()).unwrap();
    assert_eq!(warning["warning"]["hint"], "did you mean \"lock-timeout\"?");
}

#[test]
fn a_wrong_type_names_file_line_and_column_and_shows_the_line() {
    let home = home();
    home.write(".config/sessile/config.toml", "# mine\n  lock-timeout = 5 # seconds\n");
    insta::assert_snapshot!(home.call(&["config", "get", "lock-timeout"]).run().told(), @r#"
    exit 1
    --- stdout
    --- stderr
    error: ~/.config/sessile/config.toml:2:3: "lock-timeout" must be a duration such as 500ms, 30s, 10m, 2h, 1h30m or 7d, not 5
      |
    2 |   lock-timeout = 5 # seconds
      |   ^
    "#);
    let before = home.tree();
    home.call(&["config", "set", "lock-timeout", "5s", "--global"]).run().exit(1);
    assert_eq!(home.tree(), before, "and nothing is changed");
}

#[test]
fn a_syntax_error_names_file_line_and_column_and_shows_the_line() {
    let home = home();
    home.write(".config/sessile/config.toml", "color = \"never\"\nlock-timeout = = 5\n");
    insta::assert_snapshot!(home.call(&["status"]).run().told(), @"
    exit 1
    --- stdout
    --- stderr
    error: ~/.config/sessile/config.toml:2:16: extra `=`, expected nothing
      |
    2 | lock-timeout = = 5
      |                ^
    ");
    let error = home.call(&["status", "-ojson"]).run().exit(1).json_error();
    assert_eq!(error["code"], "FILE_SYNTAX");
    assert!(error["message"].as_str().unwrap().contains("config.toml:2:"), "{error}");
}
