//! PostgreSQL as it is installed, in a directory of its own.
//!
//! As root it runs as the user `postgres`, since it refuses to run as root. A server ends when nobody uses it any more: who
//! does holds a lock on a file, which the kernel takes away from the dead, and a process of its own looks at that.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{require_tool, tool_path};

/// The role that databases belong to: neither superuser nor exempt from row security.
const ROLE: &str = "sessile";
/// Role that bypasses row security.
const EXEMPT: &str = "sessile_exempt";
const PASSWORD: &str = "of-no-worth";

/// Ends the server in a directory as soon as nobody has its lock, twice in a row.
const KEEPER: &str = r#"
cd /
idle=0
while sleep 1; do
  if flock --nonblock --exclusive "$1/use.lock" true; then idle=$((idle + 1)); else idle=0; fi
  [ -d "$1/data" ] || exit 0
  [ "$idle" -ge "$2" ] || continue
  flock --exclusive "$1/start.lock" flock --nonblock --exclusive "$1/use.lock" sh -c '
    d=$1; shift; "$@" stop --silent --mode=immediate --pgdata="$d/data"; rm -rf "$d/data" "$d/port"' sh "$1" $3 && exit 0
  idle=0
done
"#;

/// A PostgreSQL server.
pub struct Postgres {
    dir: PathBuf,
    port: u16,
    /// Open handle that keeps the server running.
    #[cfg_attr(not(test), expect(dead_code, reason = "the lock file exists only to be locked"))]
    in_use: File,
    own: Option<TempDir>,
}

/// A database of a server, which is gone when this is dropped.
pub struct Database<'a> {
    server: &'a Postgres,
    name: String,
}

impl Postgres {
    /// The one that all tests of a run share, started by the first of them.
    #[track_caller]
    pub fn shared() -> Self {
        // Where another user can go, which a home may not be: one for each directory of tests.
        let tested = std::env::current_exe().expect("the test's own path");
        let tested = tested.parent().expect("a directory").to_string_lossy();
        let mark = tested.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let dir = std::env::temp_dir().join(format!("sessile-postgres-{mark:016x}"));
        Self::open(dir, None, false)
    }

    /// One for a test alone, which may do with it what it likes.
    #[track_caller]
    pub fn start() -> Self {
        let own = TempDir::new().expect("a directory");
        Self::open(own.path().to_owned(), Some(own), false)
    }

    /// One for a test alone, which speaks TLS with a certificate for `localhost` by an authority of its own.
    #[track_caller]
    pub fn with_tls() -> Self {
        let own = TempDir::new().expect("a directory");
        Self::open(own.path().to_owned(), Some(own), true)
    }

    #[track_caller]
    fn open(dir: PathBuf, own: Option<TempDir>, tls: bool) -> Self {
        std::fs::create_dir_all(&dir).expect("a directory");
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o777)).expect("a mode");
        // Tests are processes of their own, and one of them starts the server for all.
        let starting = lockable(&dir.join("start.lock"));
        starting.lock().expect("a lock");
        let in_use = lockable(&dir.join("use.lock"));
        in_use.lock_shared().expect("a lock");
        let mut server = Postgres { dir, port: 0, in_use, own };
        match std::fs::read_to_string(server.dir.join("port")).ok().and_then(|port| port.parse().ok()) {
            Some(port) if server.control("status", &[]) => server.port = port,
            _ => server.make(tls),
        }
        server
    }

    /// Makes and starts it, where there may be what a machine that went down left.
    #[track_caller]
    fn make(&mut self, tls: bool) {
        let _ = std::fs::remove_dir_all(self.data());
        std::fs::create_dir(self.data()).expect("a directory");
        if is_root() {
            run(Command::new("chown").arg("postgres:").arg(self.data()));
        }
        let sql = self.dir.join("password");
        std::fs::write(&sql, PASSWORD).expect("a file");
        run(as_postgres("initdb")
            .args(["--auth-local=trust", "--auth-host=scram-sha-256"])
            // Without fsync: the data is thrown away, and a crash of the machine is not tested.
            .args(["--no-sync", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8"])
            .arg("--pwfile")
            .arg(&sql)
            .arg("--pgdata")
            .arg(self.data()));
        self.port = free_port();
        // Many connections: tests run in parallel, each with pools of its own.
        let mut settings = format!(
            "port = {}\nlisten_addresses = 'localhost'\nunix_socket_directories = '{}'\nmax_connections = 300\n",
            self.port,
            self.data().display()
        );
        if tls {
            crate::tls::certificates(&self.dir);
            for file in ["server.pem", "server.key"] {
                std::fs::copy(self.dir.join(file), self.data().join(file)).expect("a copy");
                std::fs::set_permissions(self.data().join(file), PermissionsExt::from_mode(0o600))
                    .expect("a mode");
                if is_root() {
                    run(Command::new("chown").arg("postgres:").arg(self.data().join(file)));
                }
            }
            settings += "ssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'\n";
        }
        let file = self.data().join("postgresql.auto.conf");
        std::fs::write(&file, settings).expect("its settings");
        self.run();
        for (role, rights) in [(ROLE, "NOBYPASSRLS"), (EXEMPT, "BYPASSRLS")] {
            self.sql("postgres", &format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}' {rights}"));
        }
        self.sql("postgres", &format!("GRANT {ROLE} TO {EXEMPT}"));
        // Last: the file says that the server is complete.
        std::fs::write(self.dir.join("port"), self.port.to_string()).expect("a file");
        self.look_after();
    }

    /// Stops the server when its last user is gone.
    #[track_caller]
    fn look_after(&self) {
        let control = format!(
            "{}{}",
            if is_root() {
                format!("{} -u postgres -- ", require_tool("runuser").display())
            } else {
                String::new()
            },
            program("pg_ctl").display()
        );
        // The shared one stays longer, because test binaries run one after the other.
        let grace = if self.own.is_some() { "2" } else { "10" };
        let mut keeper = Command::new(require_tool("setsid"));
        // A session of its own: it must outlive a test that is killed with its process group.
        keeper.args(["--fork", "sh", "-c", KEEPER, "sh"]).arg(&self.dir).args([grace, &control]);
        keeper.env("PATH", tool_path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Not by `run`, which waits until nobody has its pipes any more.
        assert!(keeper.status().expect("setsid starts").success(), "the server is looked after");
    }

    /// Starts it again, as it was.
    #[track_caller]
    pub fn run(&self) {
        let log = self.data().join("log");
        assert!(
            self.control("start", &["--wait", "--log", &log.to_string_lossy()]),
            "{}",
            std::fs::read_to_string(&log).unwrap_or_default()
        );
    }

    /// Stops the server immediately.
    #[track_caller]
    pub fn stop(&self) {
        assert!(self.control("stop", &["--wait", "--mode=fast"]), "the server did not stop");
    }

    /// Ends it as a crash would.
    #[track_caller]
    pub fn crash(&self) {
        assert!(self.control("stop", &["--wait", "--mode=immediate"]), "the server did not stop");
    }

    /// Another that follows it as a synchronous standby: what was acknowledged is on both.
    #[track_caller]
    pub fn standby(&self) -> Self {
        let own = TempDir::new().expect("a directory");
        let dir = own.path().to_owned();
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o777)).expect("a mode");
        let in_use = lockable(&dir.join("use.lock"));
        in_use.lock_shared().expect("a lock");
        let standby = Postgres { dir, port: free_port(), in_use, own: Some(own) };
        run(as_postgres("pg_basebackup")
            .args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--username=postgres"])
            .arg("--host")
            .arg(self.data())
            .args(["--port", &self.port.to_string()])
            .arg("--pgdata")
            .arg(standby.data()));
        let file = standby.data().join("postgresql.auto.conf");
        let settings = std::fs::read_to_string(&file).expect("its settings");
        let own =
            format!("port = {}\nunix_socket_directories = '{}'\n", standby.port, standby.data().display());
        // Of two lines for the same, the last one counts.
        std::fs::write(&file, settings + &own).expect("its settings");
        standby.run();
        standby.look_after();
        // Only now: without a standby every commit would wait for one.
        self.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("postgres", "SELECT pg_reload_conf()");
        let follows = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        let since = Instant::now();
        while self.sql("postgres", follows) != "1" {
            assert!(since.elapsed() < Duration::from_secs(30), "no standby is connected");
            std::thread::sleep(Duration::from_millis(50));
        }
        standby
    }

    /// Makes a standby the one that writes.
    #[track_caller]
    pub fn promote(&self) {
        assert!(self.control("promote", &["--wait"]), "the standby was not promoted");
    }

    /// A new database on it, of a role that row security holds for.
    #[track_caller]
    pub fn database(&self) -> Database<'_> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // Process ids come again, and a test that was killed leaves its database.
        self.sql("postgres", &format!("DROP DATABASE IF EXISTS {name}"));
        self.sql("postgres", &format!("CREATE DATABASE {name} OWNER {ROLE}"));
        Database { server: self, name }
    }

    /// The certificate of its authority, in PEM.
    pub fn authority(&self) -> PathBuf {
        self.dir.join("ca.pem")
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn control(&self, what: &str, args: &[&str]) -> bool {
        let done = as_postgres("pg_ctl").arg(what).arg("--pgdata").arg(self.data()).args(args).status();
        done.expect("pg_ctl starts").success()
    }

    /// Runs SQL as the superuser; the lines that it answers with.
    #[track_caller]
    fn sql(&self, database: &str, sql: &str) -> String {
        let mut psql = as_postgres("psql");
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--username=postgres"]);
        psql.args(["--set=ON_ERROR_STOP=1", "--dbname", database, "--command", sql]);
        psql.arg("--host").arg(self.data()).args(["--port", &self.port.to_string()]);
        run(&mut psql)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.own.is_some() {
            self.control("stop", &["--mode=immediate"]);
        }
    }
}

impl Database<'_> {
    /// URL for the owner.
    pub fn url(&self) -> String {
        self.url_of(ROLE)
    }

    /// URL for a role that bypasses row security.
    pub fn exempt_url(&self) -> String {
        self.url_of(EXEMPT)
    }

    fn url_of(&self, role: &str) -> String {
        format!("postgres://{role}:{PASSWORD}@localhost:{}/{}", self.server.port, self.name)
    }

    /// Where it is, for its owner: on its server, or on another that follows it.
    pub fn url_with(&self, standby: &Postgres) -> String {
        let Database { server, name } = self;
        format!("postgres://{ROLE}:{PASSWORD}@localhost:{},localhost:{}/{name}", server.port, standby.port)
    }

    /// Runs SQL as the superuser; the lines that it answers with.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> String {
        self.server.sql(&self.name, sql)
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // A second panic while unwinding would abort the process. What is left goes with the server.
        if !std::thread::panicking() && self.server.control("status", &[]) {
            self.server.sql("postgres", &format!("DROP DATABASE {} WITH (FORCE)", self.name));
        }
    }
}

fn free_port() -> u16 {
    // PostgreSQL cannot choose a port by itself.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    taken.local_addr().expect("an address").port()
}

fn lockable(path: &Path) -> File {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    file.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    Path::new("/proc/self").metadata().expect("this process").uid() == 0
}

/// One of its programs. Debian keeps them out of the way, by version.
#[track_caller]
fn program(name: &str) -> PathBuf {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|dirs| dirs.flatten().map(|dir| dir.path().join("bin").join(name)).collect())
        .unwrap_or_default();
    versions.retain(|path| path.exists());
    versions.sort();
    versions.pop().unwrap_or_else(|| require_tool(name))
}

#[track_caller]
fn as_postgres(name: &str) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new(require_tool("runuser"));
        command.args(["-u", "postgres", "--"]).arg(program(name));
        command
    } else {
        Command::new(program(name))
    };
    // The user postgres may not enter the developer's directory.
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let done = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("it starts");
    assert!(done.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_rows_survive_a_crash() {
        let server = Postgres::start();
        let database = server.database();
        database.sql("CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
        server.crash();
        server.run();
        assert_eq!(database.sql("SELECT n FROM t"), "7");
        let role = format!("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = '{ROLE}'");
        assert_eq!(database.sql(&role), "f", "row security holds for whom the databases belong to");
    }

    #[test]
    fn committed_rows_are_on_the_standby() {
        let server = Postgres::start();
        let database = server.database();
        let standby = server.standby();
        database.sql("CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
        server.crash();
        assert_eq!(standby.sql(&database.name, "SELECT pg_is_in_recovery()"), "t");
        standby.promote();
        assert_eq!(standby.sql(&database.name, "UPDATE t SET n = n + 1; SELECT n FROM t"), "8");
    }

    #[test]
    fn unused_server_ends() {
        let server = Postgres::start();
        assert!(server.control("status", &[]));
        // As the kernel does when a test is killed.
        server.in_use.unlock().expect("the server's lock was not held");
        let since = Instant::now();
        while server.control("status", &[]) {
            assert!(since.elapsed() < Duration::from_secs(30), "the server still runs");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
