//! Which target a client reaches, for the table of [`reach`](super::reach): tools that install from the registries.
//!
//! Those of more than 150 MB run with `--run-ignored`, as `scripts/test --long` does. A tool without a server of its own here prints
//! which target is active.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::sync::LazyLock;

use testkit::{Home, Loopback};

use crate::home;
use crate::isolation::reach::{LEVELS, NAMES, Tool, reached, registry, words, write_contexts};

static SERVICES: LazyLock<Vec<Loopback>> =
    LazyLock::new(|| NAMES.iter().map(|name| Loopback::service(name)).collect());

/// A server is the same target at each port, so each has an address.
static POSTGRESQL: LazyLock<Vec<Loopback>> = LazyLock::new(|| {
    NAMES
        .iter()
        .zip(1..)
        .map(|(name, end)| Loopback::postgresql(name, Ipv4Addr::new(127, 0, 0, end)))
        .collect()
});

static MYSQL: LazyLock<Vec<Loopback>> =
    LazyLock::new(|| NAMES.iter().map(|name| Loopback::mysql(name)).collect());

fn address(servers: &[Loopback], name: &str) -> SocketAddr {
    servers[NAMES.iter().position(|one| *one == name).unwrap()].address()
}

/// Address of a target's server.
pub(super) fn service(name: &str) -> SocketAddr {
    address(&SERVICES, name)
}

fn each(entry: impl Fn(&str) -> String) -> String {
    NAMES.iter().map(|name| entry(name)).collect()
}

fn script(text: &str) -> Vec<String> {
    ["sh", "-c", text].map(str::to_owned).to_vec()
}

/// Of a tool that asks for a target at each call: all of them in a row.
fn every_target(command: &str) -> Vec<String> {
    script(&format!("for name in dev staging production; do {command}; done; true"))
}

/// Writes a file that only its owner can read, without which the clients of passwords ignore it.
fn write_private(home: &Home, path: &str, text: &str) {
    home.write(path, text);
    std::fs::set_permissions(home.path(path), std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn write_yarn_tokens(home: &Home, selected: &str) {
    // The token's key has no scheme, and no slash at its end.
    let tokens = each(|name| {
        let address = registry(name).trim_start_matches("http:").trim_end_matches('/').to_owned();
        format!("  \"{address}\":\n    npmAuthToken: token-of-{name}\n")
    });
    let settings = "enableTelemetry: false\nunsafeHttpWhitelist: [\"127.0.0.1\"]\n";
    let own = format!("npmRegistryServer: \"{}\"\n", registry(selected));
    home.write(".yarnrc.yml", format!("{settings}{own}npmRegistries:\n{tokens}"));
}

fn npmrc(selected: &str) -> String {
    let tokens =
        each(|name| format!("{}:_authToken=token-of-{name}\n", registry(name).trim_start_matches("http:")));
    format!("registry={}\n{tokens}", registry(selected))
}

/// In another directory than the home: in a project there, yarn reads the home's file as one of the project.
const YARN: Tool = Tool {
    name: "yarn",
    binding: |target| format!("registry = \"{}\"", registry(target)),
    write: write_yarn_tokens,
    ask: || script("cd /tmp && yarn npm whoami"),
    has_selection: false,
    is_moved_by_env: false,
    is_read_below_home: true,
    tricks: &[
        "cd /tmp; YARN_NPM_REGISTRY_SERVER=$NPM yarn npm whoami",
        "cd /tmp; yarn config set --home npmRegistryServer $NPM; unset YARN_NPM_REGISTRY_SERVER; yarn npm whoami",
    ],
    ..Tool::USUAL
};

const YARN_1: Tool = Tool {
    program: "yarnpkg",
    write: |home, selected| {
        home.write(".npmrc", npmrc(selected));
    },
    ask: || script("cd /tmp && yarnpkg info @scope/package description"),
    tricks: &[
        "cd /tmp; YARN_REGISTRY=$NPM yarnpkg info @scope/package description",
        "cd /tmp; yarnpkg info --registry $NPM @scope/package description",
        "cd /tmp; yarnpkg config set registry $NPM; yarnpkg info @scope/package description",
    ],
    ..YARN
};

const PNPM: Tool = Tool {
    name: "pnpm",
    binding: |target| format!("registry = \"{}\"", registry(target)),
    write: |home, selected| {
        home.write(".config/pnpm/auth.ini", npmrc(selected));
    },
    ask: || words("pnpm whoami"),
    tricks: &["pnpm whoami --registry $NPM", "pnpm config set registry $NPM; pnpm whoami --registry $NPM"],
    ..Tool::USUAL
};

const S3CMD: Tool = Tool {
    name: "s3cmd",
    binding: |target| format!("account = \"key.{target}\""),
    write: |home, selected| {
        let server = service(selected);
        let text = format!("host_base = {server}\nhost_bucket = {server}\nuse_https = False\n");
        home.write(".s3cfg", format!("[default]\naccess_key = key.{selected}\nsecret_key = s\n{text}"));
    },
    ask: || words("s3cmd ls"),
    is_single: true,
    ..Tool::USUAL
};

const RCLONE: Tool = Tool {
    name: "rclone",
    binding: |target| format!("remote = \"{target}\""),
    write: |home, _| {
        let remotes = each(|name| format!("[{name}]\ntype = http\nurl = http://{}\n", service(name)));
        home.write(".config/rclone/rclone.conf", remotes);
    },
    ask: || every_target("rclone lsf $name:"),
    has_selection: false,
    own: &["dev", "staging"],
    tricks: &["rclone config create other alias remote production: >&2; rclone lsf other:"],
    ..Tool::USUAL
};

const PSQL: Tool = Tool {
    name: "psql",
    binding: |target| format!("service = \"{target}\""),
    write: |home, _| {
        let entry = |name: &str, parts: &dyn Fn(SocketAddr) -> String| parts(address(&POSTGRESQL, name));
        let services = each(|name| {
            entry(name, &|at| format!("[{name}]\nhost={}\nport={}\ndbname=d\nuser=u\n", at.ip(), at.port()))
        });
        home.write(".pg_service.conf", services);
        let passwords =
            each(|name| entry(name, &|at| format!("{}:{}:d:u:password-of-{name}\n", at.ip(), at.port())));
        // The server does not say it.
        write_private(home, ".pgpass", &passwords);
    },
    // psql pages its output on a terminal.
    ask: || every_target("psql -wXAtc 'select 1' | cat; PGSERVICE=$name psql -wXAtc 'select 1' | cat"),
    has_selection: false,
    own: &["dev", "staging"],
    tricks: &["psql -wXAtc 'select 1' service=production | cat"],
    ..Tool::USUAL
};

const MYSQL_CLIENT: Tool = Tool {
    name: "mysql",
    binding: |target| format!("group = \"{target}\""),
    write: |home, selected| {
        let entry = |group: &str, name: &str| {
            let at = address(&MYSQL, name);
            // One login at one host would be one target, whatever the port.
            let login = format!("protocol=tcp\nuser=u\npassword=password-of-{name}");
            format!("[{group}]\nhost={}\nport={}\n{login}\n", at.ip(), at.port())
        };
        let groups = each(|name| entry(&format!("client_{name}"), name));
        home.write(".my.cnf", entry("client", selected) + &groups);
    },
    ask: || words("mysql -NBe select"),
    is_moved_by_env: false,
    tricks: &[
        "MYSQL_GROUP_SUFFIX=_production mysql -NBe select",
        "mysql --defaults-group-suffix=_production -NBe select",
    ],
    ..Tool::USUAL
};

/// Its servers have no certificate that it would take: it prints which context is active.
const HCLOUD: Tool = Tool {
    name: "hcloud",
    binding: |target| format!("context = \"{target}\""),
    write: |home, selected| {
        let contexts = each(|name| format!("[[contexts]]\nname = \"{name}\"\ntoken = \"token-of-{name}\"\n"));
        home.write(".config/hcloud/cli.toml", format!("active_context = \"{selected}\"\n{contexts}"));
    },
    ask: || script("hcloud context active | sed 's/^/context-of-/'"),
    tricks: &[
        "hcloud context use production; hcloud context active | sed 's/^/context-of-/'",
        "cat $HCLOUD_CONFIG",
    ],
    ..Tool::USUAL
};

const LINODE: Tool = Tool {
    name: "linode-cli",
    binding: |target| format!("user = \"{target}\""),
    write: |home, selected| {
        let users = each(|name| {
            let server = format!("api_host = {}\napi_scheme = http\n", service(name));
            format!("[{name}]\ntoken = token-of-{name}\nregion = us-east\n{server}")
        });
        home.write(".config/linode-cli", format!("[DEFAULT]\ndefault-user = {selected}\n{users}"));
    },
    ask: || words("linode-cli profile view --text"),
    tricks: &[
        "linode-cli --as-user production profile view --text </dev/null",
        "linode-cli set-user production </dev/null; linode-cli profile view --text </dev/null",
    ],
    ..Tool::USUAL
};

const HF: Tool = Tool {
    name: "hf",
    // The caller's address of the hub is not for a session that is bound.
    binding: |target| format!("account = \"{target}\"\nendpoint = \"http://{}\"", service(target)),
    write: |home, selected| {
        let tokens = each(|name| format!("[{name}]\nhf_token = token-of-{name}\n"));
        home.write(".cache/huggingface/stored_tokens", tokens);
        home.write(".cache/huggingface/token", format!("token-of-{selected}"));
    },
    ask: || words("hf auth whoami"),
    tricks: &["hf auth switch --token-name production; hf auth whoami"],
    ..Tool::USUAL
};

/// It has no command for the account: a login is shown by what it uploads to.
const POETRY: Tool = Tool {
    name: "poetry",
    binding: |target| format!("repository = \"{target}\""),
    write: |home, _| {
        let addresses = each(|name| format!("[repositories.{name}]\nurl = \"http://{}/\"\n", service(name)));
        let logins = each(|name| {
            format!("[http-basic.{name}]\nusername = \"u\"\npassword = \"password-of-{name}\"\n")
        });
        let settings = "[keyring]\nenabled = false\n";
        home.write(".config/pypoetry/config.toml", format!("{addresses}{settings}"));
        home.write(".config/pypoetry/auth.toml", logins);
        let project = "[project]\nname = \"sample\"\nversion = \"0.1\"\nrequires-python = \">=3.8\"\n";
        home.write("project/pyproject.toml", project);
        home.write("project/sample-0.1/PKG-INFO", "Metadata-Version: 2.1\nName: sample\nVersion: 0.1\n");
        let pack = ["-czf", "dist/sample-0.1.tar.gz", "sample-0.1"];
        std::fs::create_dir_all(home.path("project/dist")).unwrap();
        home.tool("tar", &pack).cwd("project").ok();
    },
    ask: || every_target("poetry publish --no-interaction -r $name"),
    has_selection: false,
    own: &["dev", "staging"],
    ..Tool::USUAL
};

/// The legacy client, which is the one of PyPI: it reads the same file, and takes a profile from its option only.
const DATABRICKS: Tool = Tool {
    name: "databricks",
    binding: |target| format!("profile = \"{target}\""),
    write: |home, selected| {
        let entry = |profile: &str, name: &str| {
            format!("[{profile}]\nhost = http://{name}.example\ntoken = token-of-{name}\n")
        };
        home.write(".databrickscfg", entry("DEFAULT", selected) + &each(|name| entry(name, name)));
    },
    ask: || {
        let command = "HTTP_PROXY=$SERVICE databricks --profile $name clusters list";
        script(&format!("for name in DEFAULT dev staging production; do {command}; done; true"))
    },
    own: &["dev", "staging"],
    ..Tool::USUAL
};

const AZ: Tool = Tool {
    name: "az",
    binding: |target| format!("subscription = \"{target}\""),
    write: |home, selected| {
        let entries = NAMES.map(|name| {
            let is_default = name == selected;
            let user = "\"user\":{\"name\":\"u\",\"type\":\"user\"},\"tenantId\":\"t\",\"state\":\"Enabled\"";
            format!(
                "{{\"id\":\"id-{name}\",\"name\":\"{name}\",\"environmentName\":\"AzureCloud\",{user},\"isDefault\":{is_default}}}"
            )
        });
        home.write(".azure/azureProfile.json", format!("{{\"subscriptions\":[{}]}}", entries.join(",")));
        home.write(".azure/config", "[core]\ncollect_telemetry = no\n");
    },
    ask: || script("az account show --query name --output tsv | sed 's/^/subscription-of-/'"),
    tricks: &[
        "az account show --subscription production --query name --output tsv | sed 's/^/subscription-of-/'",
        "az account set --subscription production; az account show --query name --output tsv | sed 's/^/subscription-of-/'",
    ],
    ..Tool::USUAL
};

/// The server refuses the login by its name.
const SNOW: Tool = Tool {
    name: "snow",
    binding: |target| format!("connection = \"{target}\""),
    write: |home, selected| {
        let connections = each(|name| {
            let at = service(name);
            let server = format!("host = \"{}\"\nport = {}\nprotocol = \"http\"\n", at.ip(), at.port());
            format!("[connections.{name}]\naccount = \"{name}\"\nuser = \"u\"\npassword = \"p\"\n{server}")
        });
        let text = format!("default_connection_name = \"{selected}\"\n{connections}");
        write_private(home, ".snowflake/config.toml", &text);
    },
    ask: || words("snow connection test"),
    status: 1,
    tricks: &[
        "snow connection test --connection production",
        "snow connection set-default production; snow connection test",
        "SNOWFLAKE_DEFAULT_CONNECTION_NAME=production snow connection test",
    ],
    ..Tool::USUAL
};

const DVC: Tool = Tool {
    name: "dvc",
    binding: |target| format!("remote = \"{target}\""),
    write: |home, selected| {
        let remotes = each(|name| format!("['remote \"{name}\"']\n    url = http://{}\n", service(name)));
        let core = format!("[core]\n    remote = {selected}\n    analytics = false\n");
        home.write(".config/dvc/config", format!("{core}{remotes}"));
        home.write("project/.dvc/config", "[core]\n    no_scm = True\n");
        let output = "- md5: 5d41402abc4b2a76b9719d911017c592\n  size: 5\n  hash: md5\n  path: data\n";
        home.write("project/data.dvc", format!("outs:\n{output}"));
    },
    ask: || script("rm -rf .dvc/cache data; dvc pull --quiet --force; cat data"),
    tricks: &[
        "rm -rf .dvc/cache data; dvc pull --quiet --force --remote production; cat data",
        "dvc remote default --global production; rm -rf .dvc/cache data; dvc pull --quiet --force; cat data",
    ],
    ..Tool::USUAL
};

const OPENSTACK: Tool = Tool {
    name: "openstack",
    binding: |target| format!("cloud = \"{target}\""),
    write: |home, _| {
        let login = "username: u, password: p, project_name: p, user_domain_name: d, project_domain_name: d";
        let clouds = each(|name| {
            format!("  {name}:\n    auth: {{auth_url: \"http://{}/v3\", {login}}}\n", service(name))
        });
        home.write(".config/openstack/clouds.yaml", format!("clouds:\n{clouds}"));
    },
    ask: || every_target("OS_CLOUD=$name openstack token issue -f value -c user_id"),
    has_selection: false,
    own: &["dev", "staging"],
    tricks: &["openstack --os-cloud production token issue -f value -c user_id"],
    ..Tool::USUAL
};

fn check(tool: &Tool) {
    testkit::require_tool(if tool.program.is_empty() { tool.name } else { tool.program });
    tool.check();
}

#[test]
fn yarn_reaches_what_status_says() {
    check(&YARN);
}

#[test]
fn yarn_1_reaches_what_status_says() {
    check(&YARN_1);
}

/// yarn reads the files of every directory above as a project's, so below the home also the user's own.
#[test]
fn yarn_below_the_home_does_not_start_with_a_protected_token() {
    for (program, file) in [("yarn", ".yarnrc.yml"), ("yarnpkg", ".npmrc")] {
        testkit::require_tool(program);
        let home = home();
        if program == "yarn" {
            write_yarn_tokens(&home, "dev");
        } else {
            home.write(file, npmrc("dev"));
        }
        write_contexts(&home, "yarn", |target| format!("registry = \"{}\"", registry(target)));
        home.write("project/below/package.json", "{}");
        let run = |flags: &[&str], dir: &str, command: &[&str]| {
            let call = home.call(&["run"]).args(flags).args(&["--"]).args(command).with_tools();
            call.cwd(dir).env("NPM", registry("production")).run()
        };
        let cell = format!("{program} {file}");
        for level in LEVELS {
            for flags in [&["--isolate", level][..], &["--isolate", level, "--context", "staging"]] {
                for dir in [".", "project", "project/below"] {
                    let done = run(flags, dir, &[program, "--version"]).exit(125);
                    let told = done.told();
                    assert!(told.contains("as the project's file"), "{cell} {flags:?} {dir}: {told}");
                    assert!(told.contains("outside"), "{cell} {flags:?} {dir}: {told}");
                    assert_eq!(run(flags, dir, &["true"]).status(), Some(0), "{cell} {flags:?} {dir}");
                }
            }
            let elsewhere = ["sh", "-c", &format!("cd /tmp && {program} --version")];
            run(&["--isolate", level], "project", &elsewhere).exit(0);
        }
        let done = run(&["--isolate", "home"], "project", &["true"]).exit(0);
        assert!(done.stderr().contains("is not withheld"), "{cell}: {}", done.told());
        // Elsewhere the room's home has no such token.
        let ask = match program {
            "yarn" => "cd /tmp && YARN_NPM_REGISTRY_SERVER=$NPM yarn npm whoami",
            _ => "cd /tmp && yarnpkg info --registry $NPM @scope/package description",
        };
        let done = run(&["--isolate", "home"], "project", &["sh", "-c", ask]);
        assert_eq!(reached(&done.told()), Vec::<&str>::new(), "{cell}: {}", done.told());
        // A file without a protected token stops nothing, nor does one that nothing protects.
        std::fs::remove_file(home.path(file)).unwrap();
        home.write(".yarnrc.yml", "enableTelemetry: false\nnpmScopes: {corp: {npmAlwaysAuth: true}}\n");
        home.write(".npmrc", format!("registry={}\n", registry("production")));
        run(&["--isolate", "home"], "project", &[program, "--version"]).exit(0);
    }
}

#[test]
fn pnpm_reaches_what_status_says() {
    check(&PNPM);
}

#[test]
fn s3cmd_reaches_what_status_says() {
    check(&S3CMD);
}

#[test]
fn rclone_reaches_what_status_says() {
    check(&RCLONE);
}

#[test]
fn psql_reaches_what_status_says() {
    check(&PSQL);
}

#[test]
fn mysql_reaches_what_status_says() {
    check(&MYSQL_CLIENT);
}

#[test]
fn hcloud_reaches_what_status_says() {
    check(&HCLOUD);
}

#[test]
fn linode_cli_reaches_what_status_says() {
    check(&LINODE);
}

#[test]
fn hf_reaches_what_status_says() {
    check(&HF);
}

#[test]
fn poetry_reaches_what_status_says() {
    check(&POETRY);
}

#[test]
fn databricks_reaches_what_status_says() {
    check(&DATABRICKS);
}

#[test]
#[ignore = "needs a client of 730 MB from PyPI, which scripts/test --long installs"]
fn az_reaches_what_status_says() {
    check(&AZ);
}

#[test]
#[ignore = "needs a client of 200 MB from PyPI, which scripts/test --long installs"]
fn snow_reaches_what_status_says() {
    check(&SNOW);
}

#[test]
#[ignore = "needs a client of 190 MB from PyPI, which scripts/test --long installs"]
fn dvc_reaches_what_status_says() {
    check(&DVC);
}

#[test]
#[ignore = "needs a client of 160 MB from PyPI, which scripts/test --long installs"]
fn openstack_reaches_what_status_says() {
    check(&OPENSTACK);
}
