use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A home directory with these programs; a path that ends in a slash is a directory.
fn home(paths: &[&str]) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for path in paths {
        let full = home.path().join(path);
        match path.ends_with('/') {
            true => fs::create_dir_all(full).unwrap(),
            false => {
                fs::create_dir_all(full.parent().unwrap()).unwrap();
                fs::write(full, "").unwrap();
            }
        }
    }
    home
}

/// Finds a program whose directory below the home is in `PATH`; returns the directories below the home.
fn found(home: &Path, (place, name): (&str, &str), variables: &[(&str, &str)]) -> Option<Vec<String>> {
    let home = home.canonicalize().unwrap();
    let below = |path: &str| home.join(path).into_os_string();
    let mut all = vec![("PATH".into(), below(place)), ("HOME".into(), home.clone().into_os_string())];
    all.extend(variables.iter().map(|(name, path)| ((*name).into(), below(path))));
    let around = Surroundings { directory: home.clone(), variables: all };
    let (_, directories) = toolchain(name, &around)?;
    Some(directories.iter().map(|path| path.strip_prefix(&home).unwrap().display().to_string()).collect())
}

#[track_caller]
fn check(paths: &[&str], program: (&str, &str), variables: &[(&str, &str)], expected: Option<&[&str]>) {
    let home = home(paths);
    let found = found(home.path(), program, variables);
    let expected = expected.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>());
    assert_eq!(found, expected);
}

#[test]
fn of_asdf_the_newest_version_is_offered() {
    let paths = [
        ".asdf/shims/node",
        ".asdf/installs/nodejs/9.10.0/bin/node",
        ".asdf/installs/nodejs/20.1.0/bin/node",
        ".asdf/installs/nodejs/22.0.0/lib/",
    ];
    check(&paths, (".asdf/shims", "node"), &[], Some(&[".asdf/installs/nodejs/20.1.0"]));
    check(&[".asdf/shims/node"], (".asdf/shims", "node"), &[], None);
    let moved = ["elsewhere/shims/go", "elsewhere/installs/golang/1.22.0/go/bin/go"];
    check(
        &moved,
        ("elsewhere/shims", "go"),
        &[("ASDF_DATA_DIR", "elsewhere")],
        Some(&["elsewhere/installs/golang/1.22.0/go"]),
    );
}

#[test]
fn of_mise_the_version_is_offered_and_not_the_directory_of_mise() {
    let home = home(&[
        ".local/bin/mise",
        ".local/share/mise/shims/",
        ".local/share/mise/installs/python/3.12.1/bin/python3",
    ]);
    let mise = home.path().join(".local/share/mise");
    symlink(home.path().join(".local/bin/mise"), mise.join("shims/python3")).unwrap();
    symlink("3.12.1", mise.join("installs/python/latest")).unwrap();
    let offered = found(home.path(), (".local/share/mise/shims", "python3"), &[]);
    assert_eq!(offered, Some(vec![".local/share/mise/installs/python/3.12.1".to_owned()]));
}

#[test]
fn nodenv_and_pyenv_are_offered_whole() {
    check(&[".nodenv/shims/node"], (".nodenv/shims", "node"), &[], Some(&[".nodenv"]));
    check(&["env/shims/node"], ("env/shims", "node"), &[("NODENV_ROOT", "env")], Some(&["env"]));
    check(&[".pyenv/shims/python3"], (".pyenv/shims", "python3"), &[], Some(&[".pyenv"]));
    // The shims of another manager are not those of pyenv.
    check(&["other/shims/python3", ".pyenv/shims/python3"], ("other/shims", "python3"), &[], None);
}

#[test]
fn uv_is_offered_with_the_pythons_that_it_installs() {
    let paths = [".local/bin/uv", ".local/share/uv/python/cpython-3.12/"];
    check(&paths, (".local/bin", "uv"), &[], Some(&[".local/bin", ".local/share/uv/python"]));
    check(&[".local/bin/uv"], (".local/bin", "uv"), &[], Some(&[".local/bin"]));
}

#[test]
fn rustup_is_offered_with_its_toolchains_and_others_by_their_own_directory() {
    let home = home(&[".cargo/bin/rustup", ".rustup/toolchains/", ".nvm/versions/node/v20/bin/node"]);
    symlink("rustup", home.path().join(".cargo/bin/cargo")).unwrap();
    let rust = found(home.path(), (".cargo/bin", "cargo"), &[]);
    assert_eq!(rust, Some(vec![".cargo/bin".to_owned(), ".rustup".to_owned()]));
    let node = found(home.path(), (".nvm/versions/node/v20/bin", "node"), &[]);
    assert_eq!(node, Some(vec![".nvm/versions/node/v20".to_owned()]));
}
