//! Variables that name a protected target, or give its address or its key, are cleared in every other session.

use testkit::Home;

use crate::home;
use crate::isolation::protected::{clusters, run};

/// A tool with a protected target, and variables of the user.
struct VariableCase {
    tool: &'static str,
    /// What the guarded context binds.
    binding: &'static str,
    /// The tool's file with the target.
    file: &'static str,
    text: &'static str,
    /// Variables that reach the target.
    reach: &'static [&'static [(&'static str, &'static str)]],
    /// Variables of another target.
    other: &'static [(&'static str, &'static str)],
}

const CASES: &[VariableCase] = &[
    VariableCase {
        tool: "psql",
        binding: "service = \"production\"",
        file: ".pg_service.conf",
        text: "[staging]\nhost=s.example\ndbname=d\nuser=u\n[production]\nhost=p.example\ndbname=d\nuser=u\n",
        reach: &[
            &[("PGSERVICE", "production")],
            &[("PGHOST", "p.example"), ("PGPASSWORD", "x")],
            &[("PGHOST", "P.example"), ("PGDATABASE", "d"), ("PGUSER", "u")],
            &[("PGHOST", "s.example,p.example")],
            &[("DATABASE_URL", "postgres://u:x@p.example:5432/d")],
            &[("POSTGRES_URL", "postgres://u:x@p.example:5432/d")],
            &[("MY_DB_HOST", "p.example")],
            &[("DATABASE_URL", "postgresql:///d?host=p.example&user=u")],
            &[("DATABASE_URL", "postgresql://u@/d?sslmode=require&hostaddr=p.example.")],
            &[("PGHOST", "p.example.")],
        ],
        other: &[
            ("PGHOST", "s.example"),
            ("PGUSER", "u"),
            ("PGPASSWORD", "x"),
            ("POSTGRES_URL", "postgres://u:x@s.example:5432/d"),
            ("HOMEPAGE", "https://p.example/"),
        ],
    },
    VariableCase {
        tool: "psql",
        binding: "host = \"p.example\"",
        file: ".pgpass",
        text: "",
        reach: &[
            &[("PGHOST", "p.example"), ("PGPASSWORD", "x")],
            &[("PGHOSTADDR", "p.example")],
            &[("DATABASE_URL", "postgres://u:x@p.example:5432/d")],
            &[("POSTGRES_URL", "postgresql://u:x@P.example/d?sslmode=require")],
            &[("POSTGRES_PRISMA_URL", "postgres://p.example/d"), ("POSTGRES_HOST", "p.example")],
            &[("SPRING_DATASOURCE_URL", "jdbc:postgresql://p.example:5432/d"), ("pg_dsn", "host=p.example")],
            &[("SQLALCHEMY_DATABASE_URI", "postgresql+psycopg://u:x@p.example/d"), ("db_host", "p.example")],
        ],
        other: &[
            ("PGHOST", "s.example"),
            ("PGPASSWORD", "x"),
            ("POSTGRES_URL", "postgres://u:x@s.example/d"),
            ("DB_HOST", "xp.example"),
            ("NO_PROXY", "p.example"),
        ],
    },
    VariableCase {
        tool: "mysql",
        binding: "host = \"p.example\"",
        file: ".my.cnf",
        text: "",
        reach: &[
            &[("MYSQL_HOST", "p.example"), ("MYSQL_PWD", "x")],
            &[("MYSQL_URL", "mysql://u:x@p.example:3306/d"), ("JDBC_URL", "jdbc:mysql://p.example/d")],
            &[("MYSQL_DSN", "u:x@tcp(p.example:3306)/d"), ("DATABASE_URL", "mysql2://u:x@p.example/d")],
        ],
        other: &[("MYSQL_HOST", "s.example"), ("MYSQL_DSN", "u:x@tcp(s.example:3306)/d"), ("DB_USER", "u")],
    },
    VariableCase {
        tool: "databricks",
        binding: "profile = \"production\"",
        file: ".databrickscfg",
        text: "[production]\nhost = https://p.example\ntoken = gone\n",
        reach: &[
            &[("DATABRICKS_CONFIG_PROFILE", "production")],
            &[("DATABRICKS_HOST", "https://P.example/"), ("DATABRICKS_TOKEN", "another")],
            &[("DATABRICKS_HOST", "p.example")],
            &[("DATABRICKS_HOST", "P.example:443")],
            &[("DATABRICKS_TOKEN", "gone")],
        ],
        other: &[("DATABRICKS_HOST", "https://s.example"), ("DATABRICKS_TOKEN", "keep")],
    },
    VariableCase {
        tool: "argocd",
        binding: "context = \"production\"",
        file: ".config/argocd/config",
        text: "current-context: staging\ncontexts:\n- {name: staging, server: s.example, user: su}\n- {name: production, server: p.example, user: pu}\n\
               servers:\n- {server: s.example}\n- {server: p.example}\nusers:\n- {name: su, auth-token: keep}\n- {name: pu, auth-token: gone}\n",
        reach: &[
            &[("ARGOCD_SERVER", "p.example:443"), ("ARGOCD_AUTH_TOKEN", "another")],
            &[("ARGOCD_AUTH_TOKEN", "gone")],
            &[("ARGOCD_OPTS", "--grpc-web --server=p.example")],
            &[("ARGOCD_SERVER", "P.example")],
        ],
        other: &[("ARGOCD_SERVER", "s.example"), ("ARGOCD_OPTS", "--grpc-web")],
    },
    VariableCase {
        tool: "snow",
        binding: "connection = \"production\"",
        file: ".snowflake/config.toml",
        text: "[connections.staging]\naccount = \"keep\"\nuser = \"u\"\n[connections.production]\naccount = \"gone\"\nuser = \"u\"\n",
        reach: &[
            &[("SNOWFLAKE_DEFAULT_CONNECTION_NAME", "production")],
            &[("SNOWFLAKE_ACCOUNT", "gone"), ("SNOWFLAKE_PASSWORD", "x")],
            &[("SNOWFLAKE_CONNECTIONS_PRODUCTION_PASSWORD", "x")],
            &[("SNOWFLAKE_CONNECTIONS_MINE_ACCOUNT", "GONE"), ("SNOWFLAKE_CONNECTIONS_MINE_PASSWORD", "x")],
        ],
        other: &[("SNOWFLAKE_ACCOUNT", "keep"), ("SNOWFLAKE_CONNECTIONS_STAGING_PASSWORD", "x")],
    },
    VariableCase {
        tool: "gcloud",
        binding: "configuration = \"production\"",
        file: ".config/gcloud/configurations/config_production",
        text: "[core]\naccount = admin@example.com\nproject = prod-1\n",
        reach: &[
            &[("CLOUDSDK_ACTIVE_CONFIG_NAME", "production")],
            &[("CLOUDSDK_CORE_ACCOUNT", "admin@example.com"), ("CLOUDSDK_CORE_PROJECT", "prod-1")],
            &[("CLOUDSDK_CORE_ACCOUNT", "admin@example.com")],
            // The account of the active configuration may be that of the protected one.
            &[("CLOUDSDK_CORE_PROJECT", "prod-1")],
            &[("GOOGLE_CLOUD_PROJECT", "prod-1")],
            &[("GCLOUD_PROJECT", "prod-1")],
            &[("GOOGLE_PROJECT", "prod-1")],
            &[("GCP_PROJECT", "prod-1")],
        ],
        other: &[("CLOUDSDK_CORE_ACCOUNT", "me@example.com"), ("CLOUDSDK_CORE_PROJECT", "dev-1")],
    },
    VariableCase {
        tool: "gcloud",
        binding: "project = \"prod-1\"",
        file: ".config/gcloud/active_config",
        text: "default",
        reach: &[
            &[("CLOUDSDK_CORE_PROJECT", "prod-1")],
            &[("GOOGLE_CLOUD_PROJECT", "prod-1")],
            &[("GCLOUD_PROJECT", "prod-1")],
            &[("GOOGLE_PROJECT", "prod-1")],
            &[("GCP_PROJECT", "prod-1")],
        ],
        other: &[("CLOUDSDK_CORE_PROJECT", "dev-1"), ("GOOGLE_PROJECT", "dev-1")],
    },
    VariableCase {
        tool: "glab",
        binding: "host = \"gitlab.prod.example\"",
        file: ".config/glab-cli/config.yml",
        text: "hosts:\n    gitlab.prod.example:\n        token: gone\n    gitlab.com:\n        token: keep\n",
        reach: &[
            &[("GITLAB_HOST", "https://GitLab.prod.example/"), ("GITLAB_TOKEN", "another")],
            &[("GL_HOST", "gitlab.prod.example")],
            &[("GITLAB_URI", "https://gitlab.prod.example")],
            &[("GITLAB_TOKEN", "gone")],
        ],
        other: &[("GITLAB_HOST", "gitlab.com"), ("GITLAB_TOKEN", "keep")],
    },
    VariableCase {
        tool: "rclone",
        binding: "remote = \"production\"",
        file: ".config/rclone/rclone.conf",
        text: "[staging]\ntype = s3\naccess_key_id = keep\n[production]\ntype = s3\naccess_key_id = gone\n",
        reach: &[
            &[("RCLONE_CONFIG_PRODUCTION_TYPE", "s3"), ("RCLONE_CONFIG_PRODUCTION_SECRET_ACCESS_KEY", "x")],
            &[("RCLONE_CONFIG_MINE_ACCESS_KEY_ID", "gone")],
        ],
        other: &[("RCLONE_CONFIG_DEV_TYPE", "s3"), ("RCLONE_CONFIG_DEV_ACCESS_KEY_ID", "keep")],
    },
    VariableCase {
        tool: "npm",
        binding: "registry = \"https://npm.corp.example/prod/\"",
        file: ".npmrc",
        text: "//npm.corp.example/prod/:_authToken=GO1\n",
        reach: &[
            &[("npm_config_registry", "https://npm.corp.example/prod")],
            &[("NPM_CONFIG_REGISTRY", "HTTPS://NPM.corp.example:443/prod/"), ("NPM_CONFIG__AUTH", "x")],
            &[("Npm_Config_Registry", "https://npm.corp.example/prod/sub/")],
            &[("npm_config_//npm.corp.example/prod/:_authToken", "x")],
            &[("NPM_CONFIG_//npm.corp.example/prod/:_authToken", "x")],
            &[("npm_config_registry", "https://u:a=b,c@npm.corp.example/prod/")],
            &[("npm_config_@corp:registry", "https://u:x@npm.corp.example:443/prod/")],
        ],
        other: &[
            ("NPM_CONFIG_REGISTRY", "https://npm.corp.example/dev/"),
            ("npm_config_//npm.corp.example/dev/:_authToken", "x"),
        ],
    },
    VariableCase {
        tool: "pnpm",
        binding: "registry = \"https://npm.corp.example/prod/\"",
        file: ".config/pnpm/rc",
        text: "//npm.corp.example/prod/:_authToken=GO1\n",
        reach: &[
            &[("pnpm_config_registry", "https://npm.corp.example/prod")],
            &[("PNPM_CONFIG_REGISTRY", "https://u:x@npm.corp.example/prod")],
            &[("pnpm_config_@corp:registry", "https://u:x@npm.corp.example/prod")],
        ],
        other: &[("pnpm_config_registry", "https://npm.corp.example/dev")],
    },
    VariableCase {
        tool: "npm",
        binding: "registry = \"https://npm.corp.example:443/\"",
        file: ".npmrc",
        text: "//npm.corp.example/:_authToken=GO1\n",
        reach: &[
            &[("npm_config_registry", "https://npm.corp.example/")],
            &[("npm_config_//npm.corp.example/:_authToken", "x")],
        ],
        other: &[("NPM_CONFIG_REGISTRY", "https://npm.dev.example/")],
    },
    VariableCase {
        tool: "doctl",
        binding: "context = \"default\"",
        file: ".config/doctl/config.yaml",
        text: "access-token: gone\nauth-contexts:\n    staging: keep\n",
        reach: &[&[("DIGITALOCEAN_ACCESS_TOKEN", "gone")], &[("DIGITALOCEAN_TOKEN", "gone")]],
        other: &[("DIGITALOCEAN_TOKEN", "keep")],
    },
    VariableCase {
        tool: "gh",
        binding: "user = \"prod\"",
        file: ".config/gh/hosts.yml",
        text: "github.com:\n    users:\n        prod:\n            oauth_token: gone\n",
        reach: &[&[("GITHUB_PAT", "gone")], &[("GH_PAT", "gone")], &[("HOMEBREW_GITHUB_API_TOKEN", "gone")]],
        other: &[("GITHUB_PAT", "keep")],
    },
    VariableCase {
        tool: "terraform",
        binding: "host = \"tfe.prod-1.example\"",
        file: ".terraform.d/credentials.tfrc.json",
        text: "{\"credentials\":{\"tfe.prod-1.example\":{\"token\":\"gone\"}}}",
        reach: &[&[("TF_TOKEN_tfe_prod__1_example", "x")], &[("TF_TOKEN_other_example", "gone")]],
        other: &[("TF_TOKEN_tfe_dev_example", "x")],
    },
    VariableCase {
        tool: "poetry",
        binding: "repository = \"production\"",
        file: ".config/pypoetry/auth.toml",
        text: "[http-basic.production]\nusername = \"u\"\npassword = \"gone\"\n",
        reach: &[
            &[("POETRY_HTTP_BASIC_PRODUCTION_PASSWORD", "x"), ("POETRY_HTTP_BASIC_PRODUCTION_USERNAME", "u")],
            &[("POETRY_PYPI_TOKEN_PRODUCTION", "x")],
        ],
        other: &[("POETRY_HTTP_BASIC_STAGING_PASSWORD", "x")],
    },
    VariableCase {
        tool: "mysql",
        binding: "group = \"production\"",
        file: ".my.cnf",
        text: "[client_production]\nhost=p.example\nport=3306\n",
        reach: &[
            &[("MYSQL_GROUP_SUFFIX", "_production")],
            &[("MYSQL_HOST", "p.example"), ("MYSQL_PWD", "x")],
        ],
        other: &[("MYSQL_GROUP_SUFFIX", "_dev"), ("MYSQL_HOST", "s.example"), ("MYSQL_PWD", "x")],
    },
    VariableCase {
        tool: "vault",
        binding: "address = \"https://vault.prod.example\"",
        file: ".vault-token",
        text: "hvs.x",
        reach: &[&[("VAULT_ADDR", "https://vault.prod.example:443/"), ("VAULT_TOKEN", "x")]],
        other: &[("VAULT_ADDR", "https://vault.dev.example"), ("VAULT_TOKEN", "x")],
    },
    VariableCase {
        tool: "terraform",
        binding: "workspace = \"production\"",
        file: ".terraformrc",
        text: "",
        reach: &[&[("TF_WORKSPACE", "production")]],
        other: &[("TF_WORKSPACE", "dev")],
    },
    VariableCase {
        tool: "az",
        binding: "subscription = \"Production\"",
        file: ".azure/azureProfile.json",
        text: "{\"subscriptions\":[{\"id\":\"1\",\"name\":\"Staging\"},{\"id\":\"2\",\"name\":\"Production\"}]}",
        reach: &[
            &[("AZURE_SUBSCRIPTION_ID", "2"), ("AZURE_CLIENT_SECRET", "x")],
            &[("ARM_SUBSCRIPTION_ID", "2")],
        ],
        other: &[("AZURE_SUBSCRIPTION_ID", "1"), ("AZURE_CLIENT_SECRET", "x")],
    },
];

/// The variables that a command of a session has.
fn kept(home: &Home, flags: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    let mut call = run(home, flags, &["/usr/bin/env"]);
    for (name, value) in variables {
        call = call.env(name, value);
    }
    let all = call.ok().stdout();
    let is_there = |(name, value): &&(&str, &str)| all.lines().any(|line| line == format!("{name}={value}"));
    variables.iter().filter(is_there).map(|(name, _)| (*name).to_owned()).collect()
}

#[test]
fn variables_that_reach_a_protected_target_are_cleared() {
    let mut wrong = Vec::new();
    for case in CASES {
        let home = home();
        let context = format!("guard = \"explicit\"\n[tools.{}]\n{}\n", case.tool, case.binding);
        home.write(".config/sessile/contexts/production.toml", context);
        home.write(case.file, case.text);
        for variables in case.reach {
            let left = kept(&home, &[], variables);
            if !left.is_empty() {
                wrong.push(format!("{} {}: {variables:?} leaves {left:?}", case.tool, case.binding));
            }
        }
        let left = kept(&home, &[], case.other);
        if left.len() != case.other.len() {
            wrong.push(format!("{}: of {:?} only {left:?} stays", case.tool, case.other));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Programs that use the clusters of kubectl have variables of their own for them.
const HELM: &[(&str, &str)] = &[
    ("HELM_KUBECONTEXT", "production"),
    ("HELM_KUBEAPISERVER", "https://production.example.invalid"),
    ("HELM_KUBETOKEN", "t-production"),
    ("HELM_KUBEASUSER", "root"),
    ("HELM_KUBEASGROUPS", "system:masters"),
    ("HELM_KUBECAFILE", "/ca"),
    ("HELM_KUBEINSECURE_SKIP_TLS_VERIFY", "true"),
    ("HELM_KUBETLS_SERVER_NAME", "x"),
    ("HELM_NAMESPACE", "prod"),
];

#[test]
fn variables_of_followers_do_not_override_a_binding() {
    let home = home();
    home.write(".kube/config", clusters(&["staging", "production"]));
    home.write(".config/sessile/contexts/staging.toml", "[tools.kubectl]\ncontext = \"staging\"\n");
    assert_eq!(kept(&home, &["--context", "staging"], HELM), [""; 0]);
    let terraform =
        [("KUBE_CONFIG_PATH", "/x"), ("KUBE_CTX", "production"), ("KUBE_HOST", "h"), ("KUBE_TOKEN", "t")];
    assert_eq!(kept(&home, &["--context", "staging"], &terraform), [""; 0]);
    assert_eq!(kept(&home, &[], HELM).len(), HELM.len(), "without a binding they are the user's own");
    home.write(
        ".config/sessile/contexts/both.toml",
        "[tools.kubectl]\ncontext = \"staging\"\n[tools.helm]\ncontext = \"staging\"\nnamespace = \"web\"\n",
    );
    let bound = [("HELM_KUBECONTEXT", "staging"), ("HELM_NAMESPACE", "web")];
    assert_eq!(
        kept(&home, &["--context", "both"], &bound).len(),
        2,
        "a binding of the follower itself stays"
    );
}

#[test]
fn variables_of_followers_do_not_reach_a_protected_target() {
    let home = home();
    home.write(".kube/config", clusters(&["staging", "production"]));
    let context = "guard = \"explicit\"\n[tools.kubectl]\ncontext = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    for at in 0..3 {
        assert_eq!(kept(&home, &[], &HELM[at..=at]), [""; 0]);
    }
    assert_eq!(kept(&home, &[], &[("KUBERNETES_MASTER", "https://production.example.invalid:443")]), [""; 0]);
    assert_eq!(
        kept(&home, &[], &[("KUBE_HOST", "https://production.example.invalid"), ("KUBE_TOKEN", "x")]),
        [""; 0]
    );
    let other = [("HELM_KUBECONTEXT", "staging"), ("HELM_KUBEASUSER", "root"), ("HELM_NAMESPACE", "web")];
    assert_eq!(kept(&home, &[], &other).len(), 3);
}

/// A flag that sets a variable for one call does not bypass the protection.
#[test]
fn env_flag_does_not_reach_a_protected_target() {
    let home = home();
    let context =
        "guard = \"explicit\"\n[tools.psql]\nhost = \"p.example\"\n[tools.aws]\nprofile = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    home.write(".aws/config", "[profile production]\nrole_arn = arn:aws:iam::2:role/p\n");
    for pair in ["PGHOST=p.example", "AWS_PROFILE=production"] {
        let done = run(&home, &["--env", pair, "-ojson"], &["true"]).run().exit(125);
        assert_eq!(done.code(), "PROTECTED_TARGET", "{pair}");
    }
    run(&home, &["--env", "PGHOST=s.example"], &["true"]).ok();
}

/// A hooked shell is in the user's own tmux; a command of a session must not find that.
#[test]
fn hooked_shell_keeps_its_tmux_and_commands_do_not() {
    let home = home();
    let script = "export TMUX=/tmp/own,1,0 TMUX_PANE=%1; eval \"$(sessile hook bash)\"; sessile session start --name s1; \
                  _sessile_hook; echo \"shell $SESSILE_SESSION ${TMUX-none} ${TMUX_PANE-none}\"; \
                  sessile run -- sh -c 'echo \"command ${TMUX-none}\"'";
    let (text, status) = home.shell().run(script);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains(" /tmp/own,1,0 %1") && text.contains("command none"), "{text}");
}

#[test]
fn aws_profile_is_withheld_in_every_spelling_of_its_section() {
    testkit::require_tool("aws");
    for header in [
        "[profile 'production']",
        "[profile \"production\"]",
        "[profile\tproduction]",
        "[profile production] # comment",
        "[profile production] ; comment",
        "[profile \"prod\"uction]",
        "[profile prod\\uction]",
        "[profile''  production]",
        "[profiles production]",
    ] {
        let home = home();
        home.write(
            ".aws/config",
            format!("[profile dev]\nregion = us-east-1\n{header}\nregion = us-east-2\naws_access_key_id = GONE\naws_secret_access_key = GONE\n"),
        );
        let ask = ["aws", "--profile", "production", "configure", "get", "region"];
        let own = home.tool("aws", &ask[1..]).ok().stdout();
        assert_eq!(own, "us-east-2\n", "{header}: what the tool itself reads");
        let context = "guard = \"explicit\"\n[tools.aws]\nprofile = \"production\"\n";
        home.write(".config/sessile/contexts/production.toml", context);
        let done = run(&home, &[], &ask).run();
        assert!(!done.stdout().contains("us-east-2"), "{header}: {}", done.told());
        let copy = run(&home, &[], &["sh", "-c", "cat \"$AWS_CONFIG_FILE\""]).ok().stdout();
        assert!(!copy.contains("GONE") && copy.contains("profile dev"), "{header}: {copy}");
    }
}

/// Keys are written in other ways than the profile names them: in capitals, with a colon, in quotes.
#[test]
fn alias_is_withheld_in_every_spelling_of_its_keys() {
    for (tool, binding, file, copy, text) in [
        (
            "aws",
            "profile = \"production\"",
            ".aws/config",
            "aws/config",
            "[profile dev]\nregion = keep\n[profile production]\nrole_arn = arn:aws:iam::2:role/p\n\
             [profile alias1]\nROLE_ARN: arn:aws:iam::2:role/p\n[profile alias2]\nRole_Arn=arn:aws:iam::2:role/p\n",
        ),
        (
            "databricks",
            "profile = \"production\"",
            ".databrickscfg",
            "databricks/cfg",
            "[dev]\nhost = keep\n[production]\nhost = https://p.example\ntoken = gone\n[alias1]\nHOST: https://p.example\nTOKEN: gone\n",
        ),
        (
            "mysql",
            "group = \"production\"",
            ".my.cnf",
            "home/.my.cnf",
            "[client_dev]\nhost = keep\n[client_production]\nhost = p.example\nport = 3306\n[client_alias1]\nhost = \"p.example\"\nport = '3306'\n",
        ),
        (
            "dvc",
            "remote = \"production\"",
            ".config/dvc/config",
            "dvc/config",
            "['remote \"dev\"']\nurl = s3://keep\n[\"remote 'production'\"]\nurl = s3://gone\n['remote \"alias1\"']\nurl = \"s3://gone\"\n",
        ),
    ] {
        let home = home();
        let context = format!("guard = \"explicit\"\n[tools.{tool}]\n{binding}\n");
        home.write(".config/sessile/contexts/production.toml", context);
        home.write(file, text);
        let level = if copy.starts_with("home/") { "home" } else { "env" };
        run(&home, &["--session", "s1", "--isolate", level], &["true"]).ok();
        let held = std::fs::read_to_string(crate::room(&home, "s1").join(copy)).unwrap_or_default();
        assert!(held.contains("keep"), "{tool}: {held}");
        for gone in ["production", "alias", "gone"] {
            assert!(!held.contains(gone), "{tool}: {gone} in {held}");
        }
    }
}

/// A user that impersonates another has the same key; an address of this machine has several names.
#[test]
fn kube_alias_is_withheld_in_every_spelling_of_user_and_server() {
    let home = home();
    home.write(
        ".kube/config",
        "apiVersion: v1\nkind: Config\nclusters:\n\
         - {name: p, cluster: {server: 'https://127.0.0.1:6443'}}\n- {name: l, cluster: {server: 'https://localhost:6443/'}}\n\
         - {name: d, cluster: {server: 'https://127.0.0.1:7443'}}\n\
         users:\n- {name: p, user: {token: t-prod}}\n- {name: a, user: {token: t-prod, as: admin}}\n\
         - {name: c, user: {token: t-prod, as-groups: [x]}}\n\
         contexts:\n- {name: production, context: {cluster: p, user: p}}\n- {name: alias1, context: {cluster: p, user: a}}\n\
         - {name: alias2, context: {cluster: l, user: c}}\n- {name: dev, context: {cluster: d, user: a}}\n",
    );
    let context = "guard = \"explicit\"\n[tools.kubectl]\ncontext = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    let names = run(&home, &[], &["kubectl", "config", "get-contexts", "-o", "name"]).ok().stdout();
    assert_eq!(names, "dev\n");
}

/// Ansible, skaffold, werf and others.
#[test]
fn variables_of_other_clients_do_not_reach_a_protected_target() {
    let home = home();
    home.write(".kube/config", clusters(&["staging", "production"]));
    home.write(
        ".docker/contexts/meta/ab8e18ef4ebebeddc0b3152ce9c9006e14fc05242e3fc9ce32246ea6a9543074/meta.json",
        "{\"Name\":\"production\",\"Endpoints\":{\"docker\":{\"Host\":\"tcp://prod.example:2376\"}}}",
    );
    let context = "guard = \"explicit\"\n[tools.kubectl]\ncontext = \"production\"\n[tools.docker]\ncontext = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    let file = home.path(".kube/config").display().to_string();
    let reaching = [
        ("K8S_AUTH_KUBECONFIG", file.as_str()),
        ("K8S_AUTH_CONTEXT", "production"),
        ("K8S_AUTH_HOST", "https://production.example.invalid"),
        ("K8S_AUTH_API_KEY", "t-production"),
        ("SKAFFOLD_KUBE_CONTEXT", "production"),
        ("SKAFFOLD_KUBECONFIG", &file),
        ("WERF_KUBE_CONTEXT", "production"),
        ("WERF_KUBE_CONFIG", &file),
        ("HELM_KUBECONFIG", &file),
        ("CONTAINER_HOST", "tcp://prod.example:2376"),
    ];
    let mut wrong = Vec::new();
    for (name, value) in reaching {
        wrong.extend(kept(&home, &[], &[(name, value)]));
        if name.ends_with("KEY") {
            continue;
        }
        let pair = format!("{name}={value}");
        let done = run(&home, &["--env", &pair, "-ojson"], &["true"]).run();
        if done.status() != Some(125) || done.code() != "PROTECTED_TARGET" {
            wrong.push(format!("--env {pair}: {}", done.told()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let other = [
        ("K8S_AUTH_CONTEXT", "staging"),
        ("K8S_AUTH_API_KEY", "t-staging"),
        ("SKAFFOLD_KUBE_CONTEXT", "staging"),
        ("CONTAINER_HOST", "tcp://staging.example:2376"),
    ];
    assert_eq!(kept(&home, &[], &other).len(), other.len());
}

/// Files of a user are named relative to the kubeconfig; a helper's defaults may be written or not.
#[test]
fn kube_user_is_known_in_every_spelling_of_its_files() {
    let spellings = [
        ("{tokenFile: PF}", "{tokenFile: PF}"),
        ("{tokenFile: PF}", "{tokenFile: ./PF, as: admin}"),
        ("{tokenFile: PF}", "{tokenFile: HOME/.kube/x/../PF}"),
        ("{tokenFile: /a/PF}", "{tokenFile: '/a/./PF'}"),
        ("{client-certificate: c, client-key: pki/k}", "{client-certificate: /d, client-key: pki//k}"),
        ("{exec: {command: ./h, args: [a]}}", "{exec: {command: ./h, args: [a]}}"),
        ("{exec: {command: ./h, args: [a]}}", "{exec: {command: HOME/.kube/h, args: [a]}}"),
        ("{exec: {command: h, args: [a]}}", "{exec: {command: h, args: [a], interactiveMode: IfAvailable}}"),
        (
            "{exec: {command: h, args: [a]}}",
            "{exec: {command: h, args: [a], env: null, provideClusterInfo: false}}",
        ),
        ("{exec: {command: h}}", "{exec: {command: h, args: [], env: [], apiVersion: v1}}"),
    ];
    let servers = [
        "https://p.example:6443/./",
        "https://p.example:6443/%2e",
        "https://p%2Eex%61mple:6443",
        "https://p.example:6443/a/..",
    ];
    let own = "https://p.example:6443";
    let cases = spellings
        .map(|(user, alias)| (user, alias, own))
        .into_iter()
        .chain(servers.map(|server| ("{token: t}", "{token: t}", server)));
    let mut wrong = Vec::new();
    for (user, alias, server) in cases {
        let home = home();
        let alias = alias.replace("HOME", home.path("").display().to_string().trim_end_matches('/'));
        home.write(
            ".kube/config",
            format!(
                "apiVersion: v1\nkind: Config\nclusters:\n- {{name: p, cluster: {{server: '{own}'}}}}\n- {{name: a, cluster: {{server: '{server}'}}}}\n\
                 users:\n- {{name: p, user: {user}}}\n- {{name: a, user: {alias}}}\n- {{name: d, user: {{exec: {{command: h, args: [b]}}}}}}\n\
                 - {{name: f, user: {{tokenFile: other/PF}}}}\n\
                 contexts:\n- {{name: production, context: {{cluster: p, user: p}}}}\n- {{name: alias, context: {{cluster: a, user: a}}}}\n\
                 - {{name: dev, context: {{cluster: p, user: d}}}}\n- {{name: file, context: {{cluster: p, user: f}}}}\n"
            ),
        );
        let context = "guard = \"explicit\"\n[tools.kubectl]\ncontext = \"production\"\n";
        home.write(".config/sessile/contexts/production.toml", context);
        let names = run(&home, &[], &["kubectl", "config", "get-contexts", "-o", "name"]).ok().stdout();
        if names != "dev\nfile\n" {
            wrong.push(format!("{user} {alias} {server}: {names:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn kube_tokens_under_unknown_keys_are_not_copied() {
    let home = home();
    home.write(
        ".kube/config",
        clusters(&["staging", "production"]) + "old-users:\n- {name: u, user: {token: t-old}}\n",
    );
    let copy = run(&home, &[], &["sh", "-c", "cat \"$KUBECONFIG\""]).ok().stdout();
    assert!(copy.contains("t-staging") && !copy.contains("t-old"), "{copy}");
}
