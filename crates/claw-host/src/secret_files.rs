//! Files of a granted directory that hold secrets, found by their names.
//!
//! A toolchain or a directory of sources that is granted to agents often contains a file with its owner's
//! login. File tools and the sandbox cover the same files, since both ask here.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Names of files and directories that hold secrets wherever they are.
const NAMES: &[&str] = &[
    ".aws",
    ".azure",
    ".boto",
    ".docker",
    ".dockercfg",
    ".git-credentials",
    ".gnupg",
    ".htpasswd",
    ".kube",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".ssh",
    ".vault-token",
    ".yarnrc.yml",
    "_netrc",
    "application_default_credentials.json",
    "credentials.toml",
];
/// Beginnings of names of private keys, such as `id_rsa_work`; the public ones end in `.pub`.
const KEYS: &[&str] = &["id_dsa", "id_ecdsa", "id_ed25519", "id_rsa"];
/// Ends of names such as `.env.example`, which show what belongs into an environment file and hold no secret.
const EXAMPLES: &[&str] = &["dist", "example", "sample", "template"];
/// Names that hold secrets in a directory of this name.
const NAMES_IN: &[(&str, &str)] = &[
    (".cargo", "credentials"),
    (".config", "gcloud"),
    (".config", "gh"),
    (".config", "hub"),
    (".gem", "credentials"),
    ("git", "credentials"),
];
/// Extensions of files that hold keys.
const EXTENSIONS: &[&str] = &["jks", "kdbx", "key", "keystore", "p12", "pfx", "ppk"];
/// Extension of files that hold a private key or a public certificate.
const EITHER: &str = "pem";
/// A private key begins within so many bytes of its file.
const LOOKED_AT: u64 = 256 * 1024;
/// A directory with more entries is not searched, and so is not granted.
const MOST_ENTRIES: usize = 2_000_000;
/// The time for which the found files are cached.
const FRESH: Duration = Duration::from_secs(10);

/// Files found, by directory.
type Kept = HashMap<PathBuf, (Instant, Arc<[PathBuf]>)>;

/// Returns the files and directories below a granted directory that hold secrets by their names. Links are
/// not followed: the grant does not show their targets. Fails if the directory cannot be searched; a missing
/// one has none.
pub fn secret_files(granted: &Path) -> io::Result<Arc<[PathBuf]>> {
    static KEPT: Mutex<Option<Kept>> = Mutex::new(None);
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, files)) = kept().as_ref().and_then(|kept| kept.get(granted))
        && at.elapsed() < FRESH
    {
        return Ok(Arc::clone(files));
    }
    let files: Arc<[PathBuf]> = search(granted, MOST_ENTRIES)?.into();
    let mut kept = kept();
    let kept = kept.get_or_insert_with(Kept::new);
    kept.retain(|_, (at, _)| at.elapsed() < FRESH);
    kept.insert(granted.to_owned(), (Instant::now(), Arc::clone(&files)));
    Ok(files)
}

fn search(granted: &Path, most: usize) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut entries = 0_usize;
    walk(granted, &mut entries, most, |path, _| {
        let is_secret = is_secret(path);
        if is_secret {
            found.push(path.to_owned());
        }
        !is_secret
    })?;
    let linked = linked(&found, most)?;
    if !linked.is_empty() {
        let mut entries = 0_usize;
        let mut others = Vec::new();
        walk(granted, &mut entries, most, |path, kind| {
            let is_found = found.iter().any(|found| found == path);
            if !is_found && kind.is_file() && identity(path).is_some_and(|file| linked.contains(&file)) {
                others.push(path.to_owned());
            }
            !is_found
        })?;
        found.extend(others);
    }
    found.sort();
    Ok(found)
}

/// Visits everything below a directory; a directory is gone into where `visit` says so.
fn walk(
    directory: &Path,
    entries: &mut usize,
    most: usize,
    mut visit: impl FnMut(&Path, fs::FileType) -> bool,
) -> io::Result<()> {
    let mut ahead = vec![directory.to_owned()];
    while let Some(directory) = ahead.pop() {
        let listed = match fs::read_dir(&directory) {
            Ok(listed) => listed,
            // A command that cannot list it finds nothing in it by searching, and it may be gone by now.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        for entry in listed {
            let entry = entry?;
            *entries += 1;
            if *entries > most {
                let message = format!("it has more than {most} entries; grant a smaller directory");
                return Err(io::Error::other(message));
            }
            let (path, kind) = (entry.path(), entry.file_type()?);
            if visit(&path, kind) && kind.is_dir() {
                ahead.push(path);
            }
        }
    }
    Ok(())
}

/// Files with secrets that have a second name somewhere, by device and inode.
fn linked(found: &[PathBuf], most: usize) -> io::Result<HashSet<(u64, u64)>> {
    let mut linked = HashSet::new();
    let mut entries = 0_usize;
    for path in found {
        linked.extend(identity(path));
        walk(path, &mut entries, most, |path, kind| {
            linked.extend(Some(path).filter(|_| kind.is_file()).and_then(identity));
            true
        })
        .or_else(|error| if path.is_dir() { Err(error) } else { Ok(()) })?;
    }
    Ok(linked)
}

/// Device and inode of a file that has more than one name; `None` for other files.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok().filter(|found| found.is_file() && found.nlink() > 1)?;
    Some((found.dev(), found.ino()))
}

/// Returns whether a path, or a directory on the way to it, names something that holds a secret.
pub fn is_below_secret(path: &Path) -> bool {
    path.ancestors().any(is_secret)
}

/// Returns whether a path is that of a secret file, by its name.
fn is_secret(path: &Path) -> bool {
    let text = |name: Option<&OsStr>| name.map(|name| name.to_string_lossy().to_lowercase());
    let Some(name) = text(path.file_name()) else { return false };
    let within = text(path.parent().and_then(Path::file_name)).unwrap_or_default();
    let extension = Path::new(&name).extension().and_then(OsStr::to_str).unwrap_or_default();
    let is_environment = name == ".env" || (name.starts_with(".env.") && !EXAMPLES.contains(&extension));
    let is_key = extension != "pub" && KEYS.iter().any(|key| name.starts_with(key));
    is_environment
        || is_key
        || NAMES.contains(&name.as_str())
        || NAMES_IN.contains(&(within.as_str(), name.as_str()))
        || EXTENSIONS.contains(&extension)
        || (extension == EITHER && may_hold_private_key(path))
}

/// Reads the file: most certificate files are public, and programs need them. A file that cannot be read may
/// hold a key.
fn may_hold_private_key(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut start));
    let marker = b"PRIVATE KEY-----";
    read.is_err() || start.windows(marker.len()).any(|window| window == marker)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn secrets_are_found_by_name_and_private_keys_by_content() {
        let granted = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = granted.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let secret = [
            ".cargo/credentials",
            ".cargo/credentials.toml",
            ".NPMRC",
            "deep/er/.netrc",
            "deep/er/.pypirc",
            "keys/id_ed25519",
            "keys/server.key",
            "keys/both.pem",
            "keys/id_rsa_work",
            "app/.env",
            "app/.env.local",
            "app/.env.production",
        ];
        secret.iter().for_each(|path| write(path, "-----BEGIN PRIVATE KEY-----\n"));
        let plain =
            ["keys/id_ed25519.pub", "keys/id_rsa_work.pub", "app/.env.example", "ca.pem", "keyring.rs"];
        for path in plain.into_iter().chain([".ssh/config", ".cargo/bin/cargo"]) {
            write(path, "-----BEGIN CERTIFICATE-----\n");
        }
        let mut expected: Vec<PathBuf> = secret.iter().map(|path| granted.path().join(path)).collect();
        expected.push(granted.path().join(".ssh"));
        expected.sort();
        assert_eq!(search(granted.path(), 1000).unwrap(), expected);
        assert!(search(granted.path(), 3).unwrap_err().to_string().contains("more than 3 entries"));
        assert!(search(&granted.path().join("missing"), 3).unwrap().is_empty());
    }
    #[test]
    fn refuses_a_second_name_of_a_covered_file() {
        let granted = tempfile::tempdir().unwrap();
        let at = |path: &str| granted.path().join(path);
        fs::create_dir_all(at("home/.ssh")).unwrap();
        for path in ["home/.npmrc", "home/.ssh/config", "plain"] {
            fs::write(at(path), path).unwrap();
        }
        for (from, to) in [("home/.npmrc", "notes"), ("home/.ssh/config", "copy"), ("plain", "other")] {
            fs::hard_link(at(from), at(to)).unwrap();
        }
        let expected = ["copy", "home/.npmrc", "home/.ssh", "notes"].map(at);
        assert_eq!(search(granted.path(), 1000).unwrap(), expected);
    }
}
