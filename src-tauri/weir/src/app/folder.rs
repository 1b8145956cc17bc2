//! The data folder: keys, and the note of a running program.
//!
//! The data key is for clients, the control key for `weir` and the window. Both are made at the first start and kept in files that
//! only their owner can read.
//!
//! **Invariant**: a key once made is never replaced because a read failed.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::system::{private, private_dir};
use crate::accounts::secret::Secret;

/// The files of the keys, and how each key begins.
const DATA: (&str, &str) = ("data.key", "weir_");
const CONTROL: (&str, &str) = ("control.key", "weirctl_");
const RUNNING: &str = "running.json";
/// What an open store holds.
const LOCK: &str = "weir.lock";

#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

#[derive(Debug)]
pub struct Keys {
    pub data: Secret,
    pub control: Secret,
}

/// Where a running program can be asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    pub pid: u32,
    /// Scheme, host and port.
    pub origin: String,
    pub version: String,
}

#[derive(Debug)]
pub enum FolderError {
    /// This platform does not say where programs keep their data.
    Nowhere,
    File {
        path: PathBuf,
        error: io::Error,
    },
    BadKey(PathBuf),
}

impl std::fmt::Display for FolderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nowhere => f.write_str(
                "This system names no folder for a program's data. Choose one with `--data`.",
            ),
            Self::File { path, error } => write!(
                f,
                "{} cannot be used ({error}). Check its permissions, or choose another folder with `--data`.",
                path.display()
            ),
            Self::BadKey(path) => write!(
                f,
                "{} does not hold a key. Restore it, or delete it so that Weir makes a new one.",
                path.display()
            ),
        }
    }
}

/// The folder that is used where none is given: `WEIR_DATA`, else the platform's own.
pub fn default_path() -> Result<PathBuf, FolderError> {
    if let Some(path) = std::env::var_os("WEIR_DATA").filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let dirs = directories::ProjectDirs::from("", "", "weir").ok_or(FolderError::Nowhere)?;
    Ok(dirs.data_local_dir().to_owned())
}

impl Folder {
    pub fn open(path: Option<PathBuf>) -> Result<Self, FolderError> {
        let path = path.map_or_else(default_path, Ok)?;
        match private_dir().create(&path) {
            Ok(()) => Ok(Self { path }),
            Err(error) => Err(FolderError::File { path, error }),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The keys, made at the first start.
    pub fn keys(&self) -> Result<Keys, FolderError> {
        let [data, control] = [DATA, CONTROL].map(|(name, prefix)| self.key(name, prefix));
        Ok(Keys { data: data?, control: control? })
    }

    fn key(&self, name: &str, prefix: &str) -> Result<Secret, FolderError> {
        let path = self.path.join(name);
        if let Some(key) = stored(&path, prefix)? {
            return Ok(key);
        }
        let key = new_key(prefix);
        let made = private(OpenOptions::new().create_new(true).write(true)).open(&path);
        made.and_then(|mut file| {
            writeln!(file, "{key}")?;
            file.sync_all()
        })
        .map_err(|error| FolderError::File { path, error })?;
        Ok(Secret::new(key))
    }

    /// Notes where this program can be asked. A reader finds the whole note or none.
    pub fn announce(&self, running: &Running) -> Result<(), FolderError> {
        let (path, draft) = (self.path.join(RUNNING), self.path.join("running.json.new"));
        let text = serde_json::to_vec(running).expect("plain fields");
        let open = private(OpenOptions::new().create(true).truncate(true).write(true)).open(&draft);
        open.and_then(|mut file| file.write_all(&text))
            .and_then(|()| fs::rename(&draft, &path))
            .map_err(|error| FolderError::File { path, error })
    }

    pub fn withdraw(&self) {
        if let Err(error) = fs::remove_file(self.path.join(RUNNING)) {
            tracing::debug!(%error, "the note of the running program was gone already");
        }
    }
}

/// The note of the program that runs on a folder. One that was killed leaves its note behind, and a stranger may have
/// taken its port since; but the lock of the folder ended with it.
pub fn running(path: &Path) -> Option<Running> {
    let note = serde_json::from_slice(&fs::read(path.join(RUNNING)).ok()?).ok()?;
    let lock = fs::File::open(path.join(LOCK)).ok()?;
    // Where a file system has no locks, the note is all there is to go by.
    match lock.try_lock_shared() {
        Ok(()) => None,
        Err(_) => Some(note),
    }
}

/// A key of a folder as another program reads it; none where Weir was never started.
pub fn read_key(path: &Path, control: bool) -> Result<Option<Secret>, FolderError> {
    let (name, prefix) = if control { CONTROL } else { DATA };
    stored(&path.join(name), prefix)
}

/// The key in a file; none where there is no file.
fn stored(path: &Path, prefix: &str) -> Result<Option<Secret>, FolderError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(FolderError::BadKey(path.to_owned()));
        }
        Err(error) => return Err(FolderError::File { path: path.to_owned(), error }),
    };
    let key = text.trim();
    if key.len() < 16 || !key.starts_with(prefix) || !key.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(FolderError::BadKey(path.to_owned()));
    }
    Ok(Some(Secret::new(key)))
}

fn new_key(prefix: &str) -> String {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes.iter().fold(prefix.to_owned(), |key, byte| format!("{key}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_keys_and_they_differ() {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("äöü and spaces");
        let keys = Folder::open(Some(path.clone())).expect("made").keys().expect("made");
        let again = Folder::open(Some(path)).expect("there").keys().expect("kept");
        assert!(
            again.data.matches(keys.data.expose()) && again.control.matches(keys.control.expose())
        );
        assert!(!keys.control.matches(keys.data.expose()));
    }

    #[test]
    fn a_damaged_key_is_named_and_left_alone() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(Some(home.path().to_owned())).expect("made");
        let path = home.path().join(DATA.0);
        fs::write(&path, "weir_").expect("written");
        assert!(matches!(folder.keys(), Err(FolderError::BadKey(named)) if named == path));
        assert_eq!(fs::read_to_string(&path).expect("there"), "weir_");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_keys() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().expect("a folder");
        Folder::open(Some(home.path().to_owned())).expect("made").keys().expect("made");
        for (name, _) in [DATA, CONTROL] {
            let mode = fs::metadata(home.path().join(name)).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}
