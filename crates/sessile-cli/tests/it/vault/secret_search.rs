//! Looking for secrets where none may be: as they are, in base 64 of both alphabets wherever they begin, and in
//! hexadecimal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use testkit::{Call, CallResult, Home};

/// Shorter pieces would be found everywhere.
const SHORTEST: usize = 6;

/// What is looked for. All canaries of a test begin with one word, which is looked for in place of them all.
pub(super) struct SecretPattern {
    word: String,
    /// Each form, and what it is called.
    forms: Arc<RwLock<Vec<(String, String)>>>,
}

impl SecretPattern {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Tests that run beside this one have words of their own.
        let word = format!("Qn{:08x}{:02x}aryZ9", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let sought = SecretPattern { word, forms: Arc::default() };
        sought.add("a canary", &sought.word);
        sought
    }

    /// The secret of one way in. What follows the word is different in the two alphabets of base 64.
    pub(super) fn canary(&self, way: &str) -> String {
        format!("{}-{way}~?>~?>", self.word)
    }

    /// Looks for a secret that is somebody else's too.
    pub(super) fn add(&self, what: &str, secret: &str) {
        assert!(secret.len() >= SHORTEST, "{what} is too short to be looked for");
        let bytes = secret.as_bytes();
        let hex = sessile_wire::hex::hex(bytes);
        let mut forms = vec![("plain", secret.to_owned()), ("hex", hex.to_uppercase()), ("hex", hex)];
        forms.extend(in_base64(bytes, &STANDARD_NO_PAD).map(|form| ("base64", form)));
        forms.extend(in_base64(bytes, &URL_SAFE_NO_PAD).map(|form| ("base64url", form)));
        let mut known = self.forms.write().unwrap();
        for (name, form) in forms {
            if !known.iter().any(|(_, old)| *old == form) {
                known.push((format!("{what}, {name}"), form));
            }
        }
    }

    /// What is found in these bytes, if something is.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<String> {
        find(&self.forms.read().unwrap(), bytes)
    }

    #[track_caller]
    pub(super) fn assert_not_in(&self, what: &str, bytes: impl AsRef<[u8]>) {
        if let Some(found) = self.find(bytes.as_ref()) {
            panic!("{what}: {found}\n{}", String::from_utf8_lossy(bytes.as_ref()));
        }
    }

    /// The files below the home and in the directory of temporary files in which something is, and the names of such.
    pub(super) fn in_files(&self, home: &Home, except: &[&str]) -> Vec<String> {
        let except: Vec<PathBuf> = except.iter().map(|path| home.path(path)).collect();
        let mut files = home.tree();
        files.retain(|(path, _)| !except.iter().any(|one| path.starts_with(one)));
        below(&home.dir().with_file_name("tmp"), &mut files);
        let look = |(path, bytes): &(PathBuf, Vec<u8>)| {
            let found = self.find(bytes).or_else(|| self.find(path.as_os_str().as_encoded_bytes()))?;
            Some(format!("{}: {found}", path.display()))
        };
        files.iter().filter_map(look).collect()
    }

    #[track_caller]
    pub(super) fn assert_not_in_files(&self, home: &Home, except: &[&str]) {
        assert_eq!(self.in_files(home, except), [""; 0]);
    }

    /// Makes a call and looks at what it prints.
    #[track_caller]
    pub(super) fn call(&self, what: &str, call: Call) -> CallResult {
        let done = call.run();
        self.assert_not_in(what, done.stdout());
        self.assert_not_in(what, done.stderr());
        done
    }

    /// Looks at the arguments of all processes until it is told to end.
    pub(super) fn watch_processes(&self) -> Processes {
        let (over, looks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (until, count, forms) = (Arc::clone(&over), Arc::clone(&looks), Arc::clone(&self.forms));
        let watcher = std::thread::spawn(move || {
            let mut seen = BTreeSet::new();
            while !until.load(Ordering::Relaxed) {
                let forms = forms.read().unwrap().clone();
                seen.extend(
                    arguments()
                        .filter_map(|line| Some(format!("{}: {line}", find(&forms, line.as_bytes())?))),
                );
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
            seen
        });
        Processes { over, looks, watcher }
    }
}

fn find(forms: &[(String, String)], bytes: &[u8]) -> Option<String> {
    // All forms are ASCII, which this leaves as it is.
    let text = String::from_utf8_lossy(bytes);
    forms.iter().find(|(_, form)| text.contains(form.as_str())).map(|(name, _)| name.clone())
}

/// The letters that only the secret decides, for each of the three places where it can begin.
fn in_base64(secret: &[u8], engine: &impl Engine) -> impl Iterator<Item = String> {
    (0..3).filter_map(move |before: usize| {
        let padded = [&[0; 2][..before], secret].concat();
        let first = [0, 2, 3][before];
        let form = engine.encode(&padded)[first..padded.len() / 3 * 4].to_owned();
        (form.len() >= SHORTEST).then_some(form)
    })
}

fn below(dir: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            below(&path, files);
        } else if kind.is_file() {
            files.push((path.clone(), std::fs::read(path).unwrap_or_default()));
        }
    }
}

/// The arguments of every process there is now.
fn arguments() -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    })
}

/// A look at all processes, again and again.
pub(super) struct Processes {
    over: Arc<AtomicBool>,
    looks: Arc<AtomicU32>,
    watcher: JoinHandle<BTreeSet<String>>,
}

impl Processes {
    /// Ends it; the arguments in which something was.
    pub(super) fn seen(self) -> BTreeSet<String> {
        assert!(self.looks.load(Ordering::Relaxed) > 0, "the search never ran");
        self.over.store(true, Ordering::Relaxed);
        self.watcher.join().unwrap()
    }
}

/// A search that finds nothing must be one that would have found something.
mod the_search_itself {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::{eventually, home};

    fn encoded(secret: &str) -> Vec<(&'static str, String)> {
        let hex = sessile_wire::hex::hex(secret.as_bytes());
        let mut all = vec![("plain", secret.to_owned()), ("upper hex", hex.to_uppercase()), ("hex", hex)];
        for before in ["", "a", "ab", "user:"] {
            for after in ["", "\n", ":x"] {
                let text = format!("{before}{secret}{after}");
                all.push(("base64", base64::engine::general_purpose::STANDARD.encode(&text)));
                all.push(("base64url", URL_SAFE_NO_PAD.encode(&text)));
            }
        }
        all
    }

    #[test]
    fn finds_each_form_in_a_file_in_an_output_and_in_the_history() {
        let home = home();
        let sought = SecretPattern::new();
        sought.add("a token", "eyJhbG.ci-Oi_JSUzI1NiJ9?>~");
        home.call(&["config", "set", "env.X", "1", "--global"]).ok();
        sought.assert_not_in_files(&home, &[]);
        for secret in [sought.canary("test"), "eyJhbG.ci-Oi_JSUzI1NiJ9?>~".to_owned()] {
            for (form, text) in encoded(&secret) {
                let text = format!("some {text} thing");
                for place in ["a file", ".local/state/sessile/rooms/x/hosts.yml", "../tmp/left"] {
                    let path = home.write(place, &text);
                    assert_eq!(sought.in_files(&home, &[]).len(), 1, "{form} in {place}");
                    std::fs::remove_file(path).unwrap();
                }
                let printed = home.tool("echo", &[&text]).ok().stdout();
                assert!(sought.find(printed.as_bytes()).is_some(), "{form} in an output");
            }
        }
        sought.assert_not_in_files(&home, &[]);
        // A setting is kept in the history, and so in the store.
        home.call(&["config", "set", "env.X", &sought.canary("test"), "--global"]).ok();
        let history = home.call(&["history", "show", "2"]).ok().stdout();
        assert!(sought.find(history.as_bytes()).is_some());
        let found = sought.in_files(&home, &[".config"]);
        assert!(!found.is_empty() && found.iter().all(|line| line.contains("state.db")), "{found:?}");
        home.write(format!("{}.txt", sought.canary("name")), "");
        assert_eq!(sought.in_files(&home, &[".config", ".local"]).len(), 1, "a file's name");
    }

    #[test]
    #[should_panic(expected = "a canary, base64")]
    fn fails_when_a_command_prints_one() {
        let (home, sought) = (home(), SecretPattern::new());
        let text = base64::engine::general_purpose::STANDARD.encode(sought.canary("test"));
        sought.call("a leak", home.tool("echo", &[&text]));
    }

    #[test]
    fn sees_the_arguments_of_a_process() {
        let sought = SecretPattern::new();
        let processes = sought.watch_processes();
        let mut waiting = Command::new("/bin/sh")
            .args(["-c", "read x", &sought.canary("test")])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        eventually("the process", || arguments().any(|line| sought.find(line.as_bytes()).is_some()));
        // The look that goes on now may have been too early for it.
        let before = processes.looks.load(Ordering::Relaxed);
        eventually("two more looks", || processes.looks.load(Ordering::Relaxed) > before + 2);
        waiting.kill().unwrap();
        waiting.wait().unwrap();
        assert!(!processes.seen().is_empty());
    }
}
