//! Protected targets of tools that are tried by their files.

use crate::isolation::file_case::FileCase;
use crate::isolation::protected::run;
use crate::{home, room};

const BY_FILES: &[FileCase] = &[
    FileCase {
        tool: "az",
        binding: "subscription = \"Production\"",
        original: ".azure/azureProfile.json",
        copy: "azure/azureProfile.json",
        text: "\u{feff}{\"subscriptions\":[{\"id\":\"1\",\"name\":\"Staging\",\"isDefault\":false},{\"id\":\"2\",\"name\":\"Production\",\"isDefault\":true},{\"id\":\"2\",\"name\":\"Alias\",\"isDefault\":false}]}",
        stays: &["Staging"],
        goes: &["Production", "Alias"],
    },
    FileCase {
        tool: "npm",
        binding: "registry = \"https://npm.corp.example/prod/\"",
        original: ".npmrc",
        copy: "npm/npmrc",
        text: "registry=https://public.example/\n@corp:registry=https://npm.corp.example/prod/\n//npm.corp.example/prod/:_authToken=GO1\n\
               //npm.corp.example/prod/sub/:_authToken=GO2\n//public.example/:_authToken=KEEP\n",
        stays: &["KEEP", "@corp:registry=", "registry=https://public.example/"],
        goes: &["GO1", "GO2"],
    },
    // The spellings that npm's parser reads.
    FileCase {
        tool: "npm",
        binding: "registry = \"https://npm.corp.example/prod/\"",
        original: ".npmrc",
        copy: "npm/npmrc",
        text: "\u{feff}//npm.corp.example/prod/:_authToken=GO1\r//npm.corp.example/prod/:_auth=GO2\r@corp:registry=KEEP1\r\n\
               \"//npm.corp.example/prod/:_authToken\"=GO3\n'\"\\u002f/npm.corp.example\\/prod/:_authToken\"' = GO4\n\
               //${HOST}/prod/:_authToken=GO5\n${KEY}=GO6\n\"\\u0024{KEY}\"=GO7\n//npm.corp.example/prod/:_authToken[]=GO8\n\
               @${SCOPE}:registry=KEEP2\n//public.example/:_authToken=${KEEP3}\n; //npm.corp.example/prod/:_authToken=KEEP4\n",
        stays: &["KEEP1", "KEEP2", "${KEEP3}", "KEEP4"],
        goes: &["GO1", "GO2", "GO3", "GO4", "GO5", "GO6", "GO7", "GO8"],
    },
    FileCase {
        tool: "psql",
        binding: "service = \"production\"",
        original: ".pg_service.conf",
        copy: "pg/service.conf",
        text: "[staging]\nhost=s.example,s2.example\nuser=keep\n[production]\nhost=p.example,p2.example\nuser=gone\n\
               [list]\nhost=x.example,P2.example\nuser=gone\n[address]\nhostaddr=p.example\nuser=gone\n",
        stays: &["keep"],
        goes: &["gone", "list", "address"],
    },
    FileCase {
        tool: "glab",
        binding: "host = \"gitlab.prod.example\"",
        original: ".config/glab-cli/config.yml",
        copy: "glab/config.yml",
        text: "git_protocol: ssh\nhosts:\n    gitlab.prod.example:\n        token: gone\n    gitlab.com:\n        token: keep\n",
        stays: &["keep", "git_protocol"],
        goes: &["gone"],
    },
    FileCase {
        tool: "doctl",
        binding: "context = \"production\"",
        original: ".config/doctl/config.yaml",
        copy: "xdg/config/doctl/config.yaml",
        text: "context: staging\nauth-contexts:\n    staging: keep\n    production: gone\n    alias: gone\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    // The context `default` is the token at the top, whatever the map says of it.
    FileCase {
        tool: "doctl",
        binding: "context = \"default\"",
        original: ".config/doctl/config.yaml",
        copy: "xdg/config/doctl/config.yaml",
        text: "access-token: GO1\ncontext: default\nauth-contexts:\n    default: \"true\"\n    staging: keep\n    alias: GO1\n",
        stays: &["keep"],
        goes: &["GO1", "alias"],
    },
    FileCase {
        tool: "doctl",
        binding: "context = \"production\"",
        original: ".config/doctl/config.yaml",
        copy: "xdg/config/doctl/config.yaml",
        text: "Access-Token: gone\ncontext: staging\nAuth-Contexts:\n    staging: keep\n    production: gone\n",
        stays: &["keep", "staging"],
        goes: &["gone"],
    },
    FileCase {
        tool: "doctl",
        binding: "context = \"production\"",
        original: ".config/doctl/config.yaml",
        copy: "xdg/config/doctl/config.yaml",
        text: "access-token: keep1\ncontext: default\nauth-contexts:\n    default: \"true\"\n    staging: keep2\n    production: gone\n",
        stays: &["keep1", "keep2"],
        goes: &["gone"],
    },
    // Without a map of users, as gh wrote it before it knew several.
    FileCase {
        tool: "gh",
        binding: "user = \"prod\"",
        original: ".config/gh/hosts.yml",
        copy: "gh/hosts.yml",
        text: "github.com:\n    user: prod\n    oauth_token: gone\n    git_protocol: ssh\n",
        stays: &["git_protocol"],
        goes: &["gone", "prod"],
    },
    FileCase {
        tool: "argocd",
        binding: "context = \"production\"",
        original: ".config/argocd/config",
        copy: "argocd/config",
        text: "current-context: staging\ncontexts:\n- {name: staging, server: s.example, user: su}\n- {name: production, server: p.example, user: pu}\n\
               - {name: alias, server: p.example, user: pu}\nservers:\n- {server: s.example}\n- {server: p.example}\nusers:\n- {name: su, auth-token: keep}\n- {name: pu, auth-token: gone}\n",
        stays: &["s.example", "keep"],
        goes: &["p.example", "gone", "alias"],
    },
    FileCase {
        tool: "databricks",
        binding: "profile = \"production\"",
        original: ".databrickscfg",
        copy: "databricks/cfg",
        text: "[production]\nhost = https://p.example\ntoken = gone\n[staging]\nhost = https://s.example\ntoken = keep\n[alias]\nhost = https://P.example:443/\ntoken = gone\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "snow",
        binding: "connection = \"production\"",
        original: ".snowflake/config.toml",
        copy: "snowflake/config.toml",
        text: "default_connection_name = \"staging\"\n[cli.logs]\nlevel = \"info\"\n[connections.staging]\naccount = \"keep\"\nuser = \"u\"\n[connections.production]\naccount = \"gone\"\nuser = \"u\"\n\
               [connections.alias]\naccount = \"gone\"\nuser = \"u\"\n",
        stays: &["keep", "cli.logs"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "hcloud",
        binding: "context = \"production\"",
        original: ".config/hcloud/cli.toml",
        copy: "hcloud/cli.toml",
        text: "active_context = \"staging\"\n[[contexts]]\nname = \"staging\"\ntoken = \"keep\"\n[[contexts]]\nname = \"production\"\ntoken = \"gone\"\n[[contexts]]\nname = \"alias\"\ntoken = \"gone\"\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "hcloud",
        binding: "context = \"production\"",
        original: ".config/hcloud/cli.toml",
        copy: "hcloud/cli.toml",
        text: "active_context = \"staging\"\ncontexts = [{ name = \"staging\", token = \"keep\" }, { name = \"production\", token = \"gone\" }, { name = \"alias\", token = \"gone\" }]\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "psql",
        binding: "service = \"production\"",
        original: ".pg_service.conf",
        copy: "pg/service.conf",
        text: "[staging]\nhost=s.example\ndbname=d\nuser=u\n[production]\nhost=p.example\ndbname=d\nuser=u\n[alias]\nhost=p.example\ndbname=d\nuser=u\n",
        stays: &["s.example"],
        goes: &["p.example", "alias"],
    },
    FileCase {
        tool: "rclone",
        binding: "remote = \"production\"",
        original: ".config/rclone/rclone.conf",
        copy: "rclone/rclone.conf",
        text: "[staging]\ntype = s3\naccess_key_id = keep\n[production]\ntype = s3\naccess_key_id = gone\n[alias]\ntype = s3\naccess_key_id = gone\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "gcloud",
        binding: "configuration = \"production\"",
        original: ".config/gcloud/configurations/config_production",
        copy: "gcloud/configurations/config_production",
        text: "[core]\naccount = admin@example.com\nproject = p\n",
        stays: &[],
        goes: &["admin"],
    },
    FileCase {
        tool: "linode-cli",
        binding: "user = \"production\"",
        original: ".config/linode-cli",
        copy: "linode/cli",
        text: "[DEFAULT]\ndefault-user = alias\nregion = eu\n[production]\ntoken = gone\n[staging]\ntoken = keep\n[alias]\ntoken = gone\n",
        stays: &["keep", "region = eu"],
        goes: &["gone", "alias", "default-user"],
    },
    FileCase {
        tool: "dvc",
        binding: "remote = \"production\"",
        original: ".config/dvc/config",
        copy: "dvc/config",
        text: "[core]\n    remote = staging\n['remote \"staging\"']\n    url = s3://keep\n['remote \"production\"']\n    url = s3://gone\n['remote \"alias\"']\n    url = s3://gone\n",
        stays: &["keep", "remote = staging"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "hf",
        binding: "account = \"production\"",
        original: ".cache/huggingface/stored_tokens",
        copy: "hf/stored_tokens",
        text: "[production]\nhf_token = hf_gone\n[staging]\nhf_token = hf_keep\n[alias]\nhf_token = hf_gone\n",
        stays: &["hf_keep"],
        goes: &["hf_gone", "alias"],
    },
    FileCase {
        tool: "poetry",
        binding: "repository = \"production\"",
        original: ".config/pypoetry/auth.toml",
        copy: "poetry/auth.toml",
        text: "[http-basic.staging]\nusername = \"u\"\npassword = \"keep\"\n[http-basic.production]\nusername = \"u\"\npassword = \"gone\"\n[http-basic.alias]\nusername = \"u\"\npassword = \"gone\"\n\
               [pypi-token]\nstaging = \"keep2\"\nproduction = \"gone2\"\nother = \"gone2\"\n",
        stays: &["keep", "keep2"],
        goes: &["gone", "alias", "other"],
    },
    FileCase {
        tool: "s3cmd",
        binding: "account = \"PRODUCTION\"",
        original: ".s3cfg",
        copy: "s3cmd/s3cfg",
        text: "[default]\naccess_key = PRODUCTION\nsecret_key = gone\n",
        stays: &[],
        goes: &["gone", "PRODUCTION"],
    },
    FileCase {
        tool: "yarn",
        binding: "registry = \"https://npm.prod.example/\"",
        original: ".yarnrc.yml",
        copy: "home/.yarnrc.yml",
        text: "npmAuthToken: GO1\nnpmRegistryServer: https://npm.prod.example\n\
               npmRegistries:\n  //npm.prod.example:\n    npmAuthToken: GO2\n  //public.example:\n    npmAuthToken: KEEP1\n\
               npmScopes:\n  corp:\n    npmRegistryServer: https://npm.prod.example/\n    npmAuthToken: GO3\n  bare:\n    npmAuthToken: GO4\n",
        stays: &["KEEP1", "bare", "npmRegistryServer: https://npm.prod.example"],
        goes: &["GO1", "GO2", "GO3", "GO4"],
    },
    FileCase {
        tool: "mysql",
        binding: "group = \"production\"",
        original: ".my.cnf",
        copy: "home/.my.cnf",
        text: "[client]\nhost=p.example\nport=3306\nuser=gone\n[client_staging]\nhost=keep\n[client_production]\nhost=p.example\nport=3306\n[mysqld]\nquick=1\n",
        stays: &["keep", "quick=1"],
        goes: &["gone", "p.example"],
    },
    FileCase {
        tool: "mysql",
        binding: "group = \"production\"",
        original: ".mylogin.cnf",
        copy: "home/.mylogin.cnf",
        text: "obfuscated",
        stays: &[],
        goes: &["obfuscated"],
    },
    FileCase {
        tool: "vault",
        binding: "address = \"https://vault.prod.example\"",
        original: ".vault-token",
        copy: "home/.vault-token",
        text: "hvs.of-some-server",
        stays: &[],
        goes: &["hvs"],
    },
    FileCase {
        tool: "terraform",
        binding: "host = \"tfe.prod.example\"",
        original: ".terraform.d/credentials.tfrc.json",
        copy: "home/.terraform.d/credentials.tfrc.json",
        text: "{\"credentials\":{\"tfe.staging.example\":{\"token\":\"keep\"},\"tfe.prod.example\":{\"token\":\"gone\"}}}",
        stays: &["keep"],
        goes: &["gone"],
    },
    FileCase {
        tool: "pnpm",
        binding: "registry = \"https://npm.corp.example/prod/\"",
        original: ".config/pnpm/auth.ini",
        copy: "xdg/config/pnpm/auth.ini",
        text: "registry=https://public.example/\n@corp:registry=https://npm.corp.example/prod/\n//npm.corp.example/prod/:_authToken=GO1\n//public.example/:_authToken=KEEP\n",
        stays: &["KEEP", "@corp:registry="],
        goes: &["GO1"],
    },
    FileCase {
        tool: "pnpm",
        binding: "registry = \"https://npm.corp.example/prod/\"",
        original: ".npmrc",
        copy: "npm/npmrc",
        text: "registry=https://public.example/\n@corp:registry=https://npm.corp.example/prod/\n//npm.corp.example/prod/:_authToken=GO1\n//public.example/:_authToken=KEEP\n",
        stays: &["KEEP", "@corp:registry="],
        goes: &["GO1"],
    },
    FileCase {
        tool: "psql",
        binding: "service = \"production\"",
        original: ".pg_service.conf",
        copy: "pg/service.conf",
        text: "[staging]\nhost=p.example\ndbname=d\nuser=keep\n[production]\nhost=p.example\ndbname=gone\n[alias]\nhost=p.example\ndbname=gone\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "mysql",
        binding: "group = \"production\"",
        original: ".my.cnf",
        copy: "home/.my.cnf",
        text: "[client]\nhost=p.example\npassword=gone\n[client_staging]\nhost=p.example\nport=3307\nuser=keep\n[client_production]\nhost=p.example\n[client_alias]\nhost=p.example\nport=3306\nuser=gone\n",
        stays: &["keep", "3307"],
        goes: &["gone", "3306"],
    },
    // Servers on two ports of one machine are two targets.
    FileCase {
        tool: "psql",
        binding: "service = \"production\"",
        original: ".pg_service.conf",
        copy: "pg/service.conf",
        text: "[staging]\nhost=localhost\nport=5433\ndbname=d\nuser=u\n[production]\nhost=localhost\ndbname=d\nuser=u\n[alias]\nhost=localhost\nport=5432\ndbname=d\nuser=u\n",
        stays: &["staging", "5433"],
        goes: &["production", "alias", "5432"],
    },
    FileCase {
        tool: "mysql",
        binding: "group = \"production\"",
        original: ".my.cnf",
        copy: "home/.my.cnf",
        text: "[client_staging]\nhost=localhost\nport=3307\nuser=u\npassword=keep\n[client_production]\nhost=localhost\nport=3308\nuser=u\npassword=keep\n",
        stays: &["client_staging", "3307"],
        goes: &["client_production", "3308"],
    },
    FileCase {
        tool: "databricks",
        binding: "profile = \"production\"",
        original: ".databrickscfg",
        copy: "databricks/cfg",
        text: "[production]\nhost = https://p.example\nauth_type = databricks-cli\n[staging]\nhost = https://p.example\nclient_id = keep\n[alias]\nhost = https://P.example\nauth_type = external-browser\n",
        stays: &["keep"],
        goes: &["databricks-cli", "external-browser", "alias"],
    },
    FileCase {
        tool: "snow",
        binding: "connection = \"production\"",
        original: ".snowflake/config.toml",
        copy: "snowflake/config.toml",
        text: "default_connection_name = \"staging\"\n[connections.staging]\naccount = \"keep\"\nuser = \"u\"\n[connections.production]\naccount = \"gone\"\nuser = \"Admin\"\n[connections.alias]\naccount = \"GONE\"\nuser = \"ADMIN\"\n",
        stays: &["keep"],
        goes: &["gone", "GONE", "alias"],
    },
    FileCase {
        tool: "rclone",
        binding: "remote = \"production\"",
        original: ".config/rclone/rclone.conf",
        copy: "rclone/rclone.conf",
        text: "[staging]\ntype = sftp\nhost = keep\n[production]\ntype = sftp\nhost = gone\n[alias]\ntype = sftp\nhost = gone\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "modal",
        binding: "profile = \"production\"",
        original: ".modal.toml",
        copy: "modal/modal.toml",
        text: "[staging]\ntoken_id = \"keep\"\ntoken_secret = \"s\"\nactive = true\n[production]\ntoken_id = \"gone\"\ntoken_secret = \"p\"\n[alias]\ntoken_id = \"gone\"\ntoken_secret = \"p\"\n",
        stays: &["keep", "active"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "prefect",
        binding: "profile = \"production\"",
        original: ".prefect/profiles.toml",
        copy: "prefect/profiles.toml",
        text: "active = \"staging\"\n[profiles.staging]\nPREFECT_API_URL = \"https://keep.example/api\"\n[profiles.production]\nPREFECT_API_URL = \"https://gone.example/api\"\nPREFECT_API_KEY = \"k\"\n[profiles.alias]\nPREFECT_API_URL = \"https://gone.example/api/\"\n",
        stays: &["keep", "active = \"staging\""],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "podman",
        binding: "connection = \"production\"",
        original: ".config/containers/podman-connections.json",
        copy: "containers/podman-connections.json",
        text: "{\"Connection\":{\"Default\":\"staging\",\"Connections\":{\"staging\":{\"URI\":\"ssh://u@keep.example/run/p.sock\"},\"production\":{\"URI\":\"ssh://u@gone.example/run/p.sock\"},\"alias\":{\"URI\":\"ssh://root@gone.example/run/p.sock\"}}}}",
        stays: &["keep", "Default"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "podman",
        binding: "connection = \"production\"",
        original: ".config/containers/containers.conf",
        copy: "containers/containers.conf",
        text: "[engine]\nactive_service = \"staging\"\n[engine.service_destinations]\n[engine.service_destinations.staging]\nuri = \"ssh://u@keep.example/run/p.sock\"\n[engine.service_destinations.production]\nuri = \"ssh://u@gone.example/run/p.sock\"\n[engine.service_destinations.alias]\nuri = \"ssh://u@gone.example/run/p.sock\"\n",
        stays: &["keep", "active_service"],
        goes: &["gone", "alias"],
    },
    // An address is the same in every spelling, also without a scheme.
    FileCase {
        tool: "mysql",
        binding: "group = \"production\"",
        original: ".my.cnf",
        copy: "home/.my.cnf",
        text: "[client_staging]\nhost=s.example\npassword=keep\n[client_production]\nhost=p.example\npassword=gone\n[client_alias]\nhost=P.example.\npassword=gone\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "argocd",
        binding: "context = \"production\"",
        original: ".config/argocd/config",
        copy: "argocd/config",
        text: "contexts:\n- {name: production, server: 'gone.example', user: pu}\n- {name: alias, server: 'GONE.example:443', user: pu}\n- {name: staging, server: keep.example, user: su}\n\
               servers:\n- {server: gone.example}\n- {server: 'GONE.example:443'}\n- {server: keep.example}\nusers:\n- {name: pu, auth-token: gone}\n- {name: su, auth-token: keep}\n",
        stays: &["keep", "staging"],
        goes: &["gone", "alias", "GONE"],
    },
    FileCase {
        tool: "databricks",
        binding: "profile = \"production\"",
        original: ".databrickscfg",
        copy: "databricks/cfg",
        text: "[production]\nhost = https://p.example\nauth_type = databricks-cli\n[staging]\nhost = s.example\nclient_id = keep\n[alias]\nhost = P.example.\nauth_type = external-browser\n",
        stays: &["keep"],
        goes: &["databricks-cli", "external-browser", "alias"],
    },
    FileCase {
        tool: "rclone",
        binding: "remote = \"production\"",
        original: ".config/rclone/rclone.conf",
        copy: "rclone/rclone.conf",
        text: "[staging]\ntype = sftp\nhost = keep.example\n[production]\ntype = sftp\nhost = gone.example\n[alias]\ntype = sftp\nhost = GONE.example.\n",
        stays: &["keep"],
        goes: &["gone", "GONE", "alias"],
    },
    FileCase {
        tool: "psql",
        binding: "service = \"production\"",
        original: ".pg_service.conf",
        copy: "pg/service.conf",
        text: "[staging]\nhost=s.example\n[production]\nhost=p.example\nuser=u\n[alias]\nhost=p.example.\nport=05432\nuser=u\n",
        stays: &["s.example"],
        goes: &["p.example", "alias", "05432"],
    },
    // These tools read keys in any case.
    FileCase {
        tool: "podman",
        binding: "connection = \"production\"",
        original: ".config/containers/podman-connections.json",
        copy: "containers/podman-connections.json",
        text: "{\"connection\":{\"CONNECTIONS\":{\"staging\":{\"uri\":\"ssh://u@keep.example/run/p.sock\"},\"production\":{\"Uri\":\"ssh://u@gone.example/run/p.sock\"},\"alias\":{\"uRI\":\"ssh://u@gone.example/run/p.sock\"}}}}",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "argocd",
        binding: "context = \"production\"",
        original: ".config/argocd/config",
        copy: "argocd/config",
        text: "Contexts:\n- {Name: production, Server: gone.example, User: pu}\n- {name: alias, SERVER: gone.example, user: pu}\n- {name: staging, server: keep.example, user: su}\n\
               users:\n- {NAME: pu, Auth-Token: gone}\n- {name: su, auth-token: keep}\n",
        stays: &["keep", "staging"],
        goes: &["gone", "alias", "pu"],
    },
    FileCase {
        tool: "hcloud",
        binding: "context = \"production\"",
        original: ".config/hcloud/cli.toml",
        copy: "hcloud/cli.toml",
        text: "[[Contexts]]\nName = \"production\"\nTOKEN = \"gone\"\n[[Contexts]]\nname = \"alias\"\nToken = \"gone\"\n[[Contexts]]\nname = \"staging\"\ntoken = \"keep\"\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "openstack",
        binding: "cloud = \"production\"",
        original: ".config/openstack/clouds.yaml",
        copy: "openstack/clouds.yaml",
        text: "clouds:\n  staging:\n    auth: {auth_url: 'https://keep.example:5000/v3', username: u, project_name: p}\n  production:\n    auth: {auth_url: 'https://gone.example:5000/v3', username: u, project_name: p}\n  alias:\n    auth: {auth_url: 'https://gone.example:5000/v3', username: u, project_name: p}\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "openstack",
        binding: "cloud = \"production\"",
        original: ".config/openstack/secure.yaml",
        copy: "openstack/secure.yaml",
        text: "clouds:\n  staging:\n    auth: {password: keep}\n  production:\n    auth: {password: gone}\n",
        stays: &["keep"],
        goes: &["gone"],
    },
];

#[test]
fn copies_of_other_tools_do_not_hold_what_is_protected() {
    for case in BY_FILES {
        let home = home();
        home.write(
            ".config/sessile/contexts/production.toml",
            format!("guard = \"explicit\"\n{}", case.context()),
        );
        case.write(&home);
        run(&home, &["--session", "s1", "--isolate", case.level()], &["true"]).ok();
        case.check(&home, "s1");
    }
}

#[test]
fn gcloud_accounts_without_a_project_are_the_same() {
    let home = home();
    let context = "guard = \"explicit\"\n[tools.gcloud]\nconfiguration = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    for (name, text) in [
        ("production", "account = admin@example.com\n"),
        ("alias", "account = admin@example.com\n"),
        ("staging", "account = admin@example.com\nproject = s\n"),
    ] {
        let path = format!(".config/gcloud/configurations/config_{name}");
        home.write(path, format!("[core]\n{text}"));
    }
    run(&home, &["--session", "s1"], &["true"]).ok();
    let held = |name: &str| room(&home, "s1").join(format!("gcloud/configurations/config_{name}")).exists();
    assert_eq!(["production", "alias", "staging"].map(held), [false, false, true]);
}

#[test]
fn file_that_cannot_be_understood_is_not_copied() {
    let home = home();
    let context = "guard = \"explicit\"\n[tools.kubectl]\ncontext = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    home.write(".kube/config", "contexts: [production\n  broken: {\n");
    run(&home, &["--session", "s1"], &["true"]).ok();
    assert!(!room(&home, "s1").join("kube/config").exists());
    assert!(home.read(".kube/config").contains("production"), "the user's own file");
}

#[test]
fn hooked_shell_does_not_have_it() {
    let home = crate::isolation::protected::guarded();
    let script =
        "eval \"$(sessile hook bash)\"; sessile session start --name s1; _sessile_hook; cat \"$KUBECONFIG\"";
    let (text, status) = home.shell().run(script);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("t-staging") && !text.contains("t-production"), "{text}");
}

/// The login of a guarded target rotates, so that its file is shared with every session: nothing can be withheld.
#[test]
fn context_show_names_targets_whose_login_rotates() {
    for (tool, binding, file, text) in [
        (
            "argocd",
            "context = \"production\"",
            ".config/argocd/config",
            "contexts:\n- {name: production, server: p.example, user: pu}\nusers:\n- {name: pu, refresh-token: r}\n",
        ),
        (
            "glab",
            "host = \"gitlab.prod.example\"",
            ".config/glab-cli/config.yml",
            "hosts:\n    gitlab.prod.example:\n        token: t\n        oauth2_refresh_token: r\n",
        ),
        (
            "rclone",
            "remote = \"production\"",
            ".config/rclone/rclone.conf",
            "[production]\ntype = drive\ntoken = {\"refresh_token\":\"r\"}\n",
        ),
    ] {
        let home = home();
        let context = format!("guard = \"explicit\"\n[tools.{tool}]\n{binding}\n");
        home.write(".config/sessile/contexts/production.toml", context);
        home.write(file, text);
        let (key, name) = binding.split_once(" = ").unwrap();
        let name = name.trim_matches('"');
        let login = home.path(file);
        let reason = format!(
            "{tool}: the {key} {name} stays in every session: the login in {} rotates; a copy would be logged out",
            login.display()
        );
        let shown = home.call(&["context", "show", "production"]).ok().stdout();
        assert!(shown.contains(&format!("unprotected  {reason}\n")), "{shown}");
        assert!(!shown.contains("  protected"), "{shown}");
        let shown = home.call(&["context", "show", "production", "-ojson"]).ok().json();
        assert_eq!(shown["not_protected"], serde_json::json!([reason]));
        let status = home.call(&["status", "-ojson"]).ok().json();
        assert_eq!(status["protected"], serde_json::json!([]), "{status}");
        home.write(file, text.replace("refresh", "static"));
        let shown = home.call(&["context", "show", "production"]).ok().stdout();
        assert!(shown.contains("  protected") && !shown.contains(&reason), "{shown}");
    }
}

#[test]
fn error_names_the_original_of_a_withheld_copy() {
    let home = home();
    for (name, guard) in [("staging", ""), ("production", "guard = \"explicit\"\n")] {
        let context = format!("{guard}[tools.s3cmd]\naccount = \"{name}\"\n");
        home.write(format!(".config/sessile/contexts/{name}.toml"), context);
    }
    home.write(".s3cfg", "[default]\naccess_key = production\nsecret_key = s\n");
    let done = run(&home, &["--context", "staging"], &["true"]).run().exit(125);
    assert!(done.told().contains("\"staging\" not found in ~/.s3cfg"), "{}", done.told());
}

/// A password in a line for every host is a service's own where no other service is left.
#[test]
fn pgpass_lines_of_a_protected_service_are_withheld() {
    let home = home();
    let context = "guard = \"explicit\"\n[tools.psql]\nservice = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    home.write(
        ".pgpass",
        "*:*:*:admin:any\np.example:*:*:*:one\np2.example:*:*:*:two\ns.example:*:*:*:keep\n",
    );
    let held = || run(&home, &["--session", "s1"], &["sh", "-c", "cat \"$PGPASSFILE\""]).ok().stdout();
    home.write(".pg_service.conf", "[production]\nhost=p.example,p2.example\n[staging]\nhost=s.example\n");
    assert_eq!(held(), "*:*:*:admin:any\ns.example:*:*:*:keep\n");
    home.write(".pg_service.conf", "[production]\nhost=p.example,p2.example\n");
    run(&home, &["--session", "s2"], &["true"]).ok();
    let held = run(&home, &["--session", "s2"], &["sh", "-c", "cat \"$PGPASSFILE\""]).ok().stdout();
    assert_eq!(held, "s.example:*:*:*:keep\n");
}

/// A line is a service's if every column agrees with it: by its escaped text, or as a wildcard.
#[test]
fn pgpass_lines_are_matched_by_all_of_their_columns() {
    let home = home();
    let context = "guard = \"explicit\"\n[tools.psql]\nservice = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    let staging = "[staging]\nhost=s.example,both.example\nport=5432,5433\ndbname=d\nuser=u\n";
    let production =
        "[production]\nhost=2001:db8::1,p\\q.example,both.example\nport=5432\ndbname=a:b\nuser=admin\n";
    home.write(".pg_service.conf", format!("{staging}{production}"));
    let goes = [
        "2001\\:db8\\:\\:1:*:*:*:gone1",
        "2001\\:db8\\:\\:1:5432:a\\:b:admin:gone2",
        "p\\\\q.example:*:*:admin:gone3",
        "\\P\\\\q.exampl\\e:*:*:*:gone4",
        "both.example:5432:a\\:b:*:gone5",
        "*:*:a\\:b:*:gone6",
        "*:*:*:admin:gone7",
        "both.example:*:*:\\admin:gone8",
    ];
    let stays = [
        "# a comment",
        "*:*:*:*:keep1",
        "both.example:*:*:u:keep2",
        "both.example:5433:d:*:keep3",
        "s.example:*:*:*:keep4",
        "2001:db8::1:*:keep5",
        "other.example:*:*:admin:keep6",
        "both.example:5433:other:other:keep7",
    ];
    home.write(".pgpass", [&goes[..], &stays].concat().join("\n") + "\n");
    let held = run(&home, &["--session", "s1"], &["sh", "-c", "cat \"$PGPASSFILE\""]).ok().stdout();
    assert_eq!(held.lines().collect::<Vec<_>>(), stays);
    // In a strict session, only lines that its service can use.
    home.write(".config/sessile/contexts/staging.toml", "[tools.psql]\nservice = \"staging\"\n");
    let flags = ["--context", "staging"];
    let held = run(&home, &flags, &["sh", "-c", "cat \"$PGPASSFILE\""]).ok().stdout();
    let strict =
        ["*:*:*:*:keep1", "both.example:*:*:u:keep2", "both.example:5433:d:*:keep3", "s.example:*:*:*:keep4"];
    assert_eq!(held.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>(), strict);
}

/// The token in use is a file without a name; it is the stored one of the same value.
#[test]
fn hf_with_a_protected_token_in_use_does_not_start() {
    let home = home();
    let context = "guard = \"explicit\"\n[tools.hf]\naccount = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    home.write(
        ".cache/huggingface/stored_tokens",
        "[production]\nhf_token = hf_gone\n[staging]\nhf_token = hf_keep\n",
    );
    home.write(".cache/huggingface/token", "hf_gone\n");
    let done = run(&home, &["--session", "s1"], &["hf", "auth", "token"]).run().exit(125);
    assert!(done.stderr().contains("current account \"production\" is protected"), "{}", done.told());
    assert!(!done.told().contains("hf_gone"), "{}", done.told());
    let held = run(&home, &["--session", "s1"], &["sh", "-c", "cat \"$HF_HOME/token\""]).ok().stdout();
    assert_eq!(held, "");
}

/// The copy in the room is nothing that a person could repair.
#[test]
fn error_of_a_broken_file_names_the_original() {
    let home = home();
    home.write(".config/sessile/contexts/staging.toml", "[tools.kubectl]\ncontext = \"staging\"\n");
    home.write(".kube/config", "contexts: [staging\n  broken: {\n");
    let done = run(&home, &["--context", "staging"], &["true"]).run().exit(125);
    assert!(
        done.stderr().contains("~/.kube/config:2:")
            || done.stderr().contains(&home.path(".kube/config").display().to_string()),
        "{}",
        done.told()
    );
    assert!(!done.stderr().contains("/rooms/"), "{}", done.told());
}

/// A subscription has an id and a name, and both are known.
#[test]
fn az_subscription_is_known_by_its_id_and_its_name() {
    let home = home();
    home.write(
        ".azure/azureProfile.json",
        "\u{feff}{\"subscriptions\":[{\"id\":\"1\",\"name\":\"Staging\",\"isDefault\":true}]}",
    );
    for name in ["Staging", "1"] {
        let bind = format!("az.subscription={name}");
        let done =
            home.call(&["context", "create", &format!("az-{}", name.to_lowercase()), "--bind", &bind]).ok();
        assert!(!done.stderr().contains("not found"), "{}", done.told());
    }
    let done = home.call(&["context", "create", "other", "--bind", "az.subscription=Stagin"]).ok();
    assert!(
        done.stderr().contains("\"Stagin\" not found") && done.stderr().contains("Staging"),
        "{}",
        done.told()
    );
}
