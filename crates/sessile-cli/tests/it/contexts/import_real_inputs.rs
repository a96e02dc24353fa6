//! Import of what people really have: the tools themselves must read from a session what they read without one.

use testkit::Home;

use crate::home;

/// What a tool prints in the context that was imported for its target.
fn inside(home: &Home, context: &str, command: &[&str]) -> String {
    home.call(&["run", "--context", context, "--"]).args(command).with_tools().ok().stdout()
}

fn outside(home: &Home, command: &[&str]) -> String {
    home.tool(command[0], &command[1..]).ok().stdout()
}

const PLUGIN: &str = r#"- name: eks-stage
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      command: aws
      args: ["--region", "eu-1", eks, get-token, --cluster-name, 'it''s', "on", "1e3"]
      env:
      - {name: AWS_PROFILE, value: "0123"}
      installHint: |
        install it
        first
      interactiveMode: IfAvailable
      provideClusterInfo: false
"#;

#[test]
fn kube_contexts_of_three_files_keep_tokens_and_exec_plugins() {
    let home = home();
    let many = |list: &dyn Fn(usize) -> String| (0..500).map(list).collect::<String>();
    home.write(
        "kube/many",
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: team7-dev\nclusters:\n{}users:\n{}contexts:\n{}",
            many(&|n| format!("- name: c{n}\n  cluster: {{server: 'https://{n}.invalid'}}\n")),
            many(&|n| format!("- name: u{n}\n  user: {{token: '{n}'}}\n")),
            many(&|n| format!("- name: team{n}-dev\n  context: {{cluster: c{n}, user: u{n}}}\n")),
        ),
    );
    home.write(
        "kube/tokens",
        "apiVersion: v1\nkind: Config\nclusters:\n- name: q\n  cluster: {server: 'https://q.invalid', \
         certificate-authority-data: Cg==, insecure-skip-tls-verify: false}\nusers:\n- name: float\n  user: {token: \
         \"1e3\"}\n- name: bool\n  user: {token: \"on\", username: 'yes', password: '007'}\ncontexts:\n- name: qa-float\n  \
         context: {cluster: q, user: float, namespace: '1'}\n- name: sandbox-bool\n  context: {cluster: q, user: bool}\n",
    );
    home.write(
        "kube/plugin",
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: eks-stage\n  cluster: {{server: 'https://eks.invalid', \
             tls-server-name: x}}\nusers:\n{PLUGIN}contexts:\n- name: eks-stage\n  context: {{cluster: eks-stage, user: \
             eks-stage}}\n"
        ),
    );
    let files =
        ["many", "tokens", "plugin"].map(|file| home.path("kube").join(file).display().to_string()).join(":");
    home.call(&["import", "--yes"]).env("KUBECONFIG", &files).ok();
    let created = home.call(&["context", "list", "-ojson"]).ok().json();
    assert_eq!(created.as_array().unwrap().len(), 503);
    for (context, target) in [
        ("test", "qa-float"),
        ("sandbox", "sandbox-bool"),
        ("staging", "eks-stage"),
        ("dev-team499", "team499-dev"),
    ] {
        let view = ["kubectl", "config", "view", "--raw", "--minify", "-o", "json"];
        let own = home
            .tool(view[0], &view[1..])
            .args(&["--context", target])
            .env("KUBECONFIG", &files)
            .ok()
            .stdout();
        let call = home.call(&["run", "--context", context, "--"]).args(&view).with_tools();
        let seen = call.env("KUBECONFIG", &files).ok().stdout();
        let parse = |text: &str| -> serde_json::Value {
            let mut json: serde_json::Value = serde_json::from_str(text).unwrap();
            // Only the selection differs.
            json.as_object_mut().unwrap().remove("current-context");
            json
        };
        assert_eq!(parse(&seen), parse(&own), "{context}");
    }
}

#[test]
fn aws_profiles_keep_their_dependencies() {
    let home = home();
    let process = home.write(
        "process",
        "#!/bin/sh\necho '{\"Version\": 1, \"AccessKeyId\": \"AKIDPROCESS\", \"SecretAccessKey\": \"s\"}'\n",
    );
    std::fs::set_permissions(&process, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let process = process.display();
    home.write(
        ".aws/config",
        format!(
            "# mine\n[default]\nregion = us-1\n\n[sso-session corp]\nsso_start_url = https://corp.invalid/start#/\n\
             sso_region = eu-1\nsso_registration_scopes = sso:account:access\n\n[profile staging-sso]\nsso_session = corp\n\
             sso_account_id = 000000000012\nsso_role_name = Dev\nregion=eu-1\n\n[profile base]\nregion = eu-2\n\n\
             [profile qa]\nrole_arn = arn:aws:iam::000000000013:role/qa\nsource_profile = base\nexternal_id = on\n\
             duration_seconds = 1e3\ns3 =\n    max_concurrent_requests = 20\n    addressing_style = path\n\n\
             [profile dev]\ncredential_process = {process} --quoted \"a b\"\nregion = eu-3\n"
        ),
    );
    home.write(".aws/credentials", "[base]\naws_access_key_id = AKIDBASE\naws_secret_access_key = abc/+=\n");
    home.call(&["import", "--yes"]).ok();
    let get = |context: &str, key: &str| inside(&home, context, &["aws", "configure", "get", key]);
    for (context, profile, keys) in [
        ("staging", "staging-sso", &["sso_session", "sso_account_id", "sso_role_name", "region"][..]),
        (
            "test",
            "qa",
            &["role_arn", "source_profile", "external_id", "duration_seconds", "s3.addressing_style"],
        ),
        ("dev", "dev", &["credential_process", "region"]),
    ] {
        for key in keys {
            let own = outside(&home, &["aws", "configure", "get", key, "--profile", profile]);
            assert_eq!(get(context, key), own, "{profile} {key}");
        }
    }
    assert_eq!(
        inside(&home, "test", &["aws", "configure", "get", "aws_access_key_id", "--profile", "base"]),
        "AKIDBASE\n"
    );
    let used = inside(&home, "dev", &["aws", "configure", "list"]);
    assert!(used.contains("custom-process"), "the process is called: {used}");
    let copy = inside(&home, "staging", &["sh", "-c", "cat \"$AWS_CONFIG_FILE\""]);
    assert!(
        copy.contains("sso_start_url = https://corp.invalid/start#/") && !copy.contains("profile qa"),
        "{copy}"
    );
}

#[test]
fn docker_contexts_keep_their_tls_data() {
    let home = home();
    let files = ["-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=docker.invalid", "-days", "30"];
    let new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    home.tool("openssl", &new).args(&files).ok();
    let path = |file: &str| home.path(file).display().to_string();
    for (name, host) in [("staging", "192.0.2.1"), ("prod", "192.0.2.2")] {
        let tls = format!("ca={0},cert={0},key={1}", path("cert.pem"), path("key.pem"));
        let endpoint = format!("host=tcp://{host}:2376,{tls}");
        home.tool("docker", &["context", "create", name, "--docker", &endpoint, "--description", "on"]).ok();
    }
    home.call(&["import", "--yes"]).ok();
    let export = |name: &str| outside(&home, &["docker", "context", "export", name, "-"]);
    let seen = inside(&home, "staging", &["docker", "context", "export", "staging", "-"]);
    assert_eq!(seen, export("staging"), "with the key and the certificates");
    assert_eq!(inside(&home, "staging", &["docker", "context", "show"]), "staging\n");
    let names = inside(&home, "staging", &["docker", "context", "ls", "--format", "{{.Name}}"]);
    assert!(!names.contains("prod"), "{names}");
}

#[test]
fn gcloud_configurations_are_imported_and_used() {
    let home = home();
    for number in 0..40 {
        home.write(
            format!(".config/gcloud/configurations/config_team{number}-stage"),
            format!("[core]\naccount = ann{number}@example.org\nproject = p-{number}\n\n[compute]\nzone = on\nregion = 1e3\n"),
        );
    }
    home.write(".config/gcloud/configurations/config_default", "[core]\naccount = own@example.org\n");
    home.write(".config/gcloud/active_config", "default");
    home.call(&["import", "--yes"]).ok();
    assert_eq!(home.call(&["context", "list", "-ojson"]).ok().json().as_array().unwrap().len(), 40);
    let list = ["gcloud", "config", "list", "--format", "json", "--quiet"];
    let file =
        "cat \"$CLOUDSDK_CONFIG/configurations/config_team17-stage\"; ls \"$CLOUDSDK_CONFIG/configurations\"";
    let copy = inside(&home, "staging-team17", &["sh", "-c", file]);
    let original = home.read(".config/gcloud/configurations/config_team17-stage");
    assert_eq!(copy, format!("{original}config_team17-stage\n"));
    // No registry of packages has it by name: only a machine that has it compares what it says.
    if testkit::find_tool("gcloud").is_none() {
        return;
    }
    let own = home.tool(list[0], &list[1..]).env("CLOUDSDK_ACTIVE_CONFIG_NAME", "team17-stage").ok().stdout();
    assert!(own.contains("p-17") && own.contains("1e3"), "{own}");
    assert_eq!(inside(&home, "staging-team17", &list), own);
    let names = inside(
        &home,
        "staging-team17",
        &["gcloud", "config", "configurations", "list", "--format", "value(name)"],
    );
    assert_eq!(names, "team17-stage\n");
}
