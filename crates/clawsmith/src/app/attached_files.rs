//! Attachments of a message: files named with `@`, pictures, and piped text.

use std::fs;
use std::path::Path;

use claw_core::counted::counted;
use claw_core::image::{self, Image};
use claw_core::message::Part;

use super::Error;

/// The largest text that is attached, in bytes.
const LARGEST_TEXT: u64 = 256 * 1024;
/// The largest picture, in bytes.
const LARGEST_PICTURE: u64 = 10 * 1024 * 1024;
/// Characters that end a sentence and no path.
const AFTER: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '"', '\''];

/// A file attached to a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Attachment {
    /// The part of the message.
    pub part: Part,
    /// The file and its size, for display.
    pub told: String,
}

/// Returns the files named as `@path` in a message, relative to the workspace. Words that name no file stay
/// text.
pub fn named_in(text: &str, workspace: &Path) -> Result<Vec<Attachment>, Error> {
    let mut attached: Vec<Attachment> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for word in text.split_whitespace().filter_map(|word| word.strip_prefix('@')) {
        let is_file = |name: &&str| !name.is_empty() && workspace.join(name).is_file();
        let trimmed = word.trim_end_matches(AFTER);
        let Some(name) = [word, trimmed].into_iter().find(is_file) else { continue };
        if !seen.contains(&name) {
            seen.push(name);
            attached.push(file(&workspace.join(name), name)?);
        }
    }
    Ok(attached)
}

/// The names after an `@` in a text that are no files of the workspace, each once.
pub fn missing_in<'a>(text: &'a str, workspace: &Path) -> Vec<&'a str> {
    let mut missing: Vec<&str> = Vec::new();
    for word in text.split_whitespace().filter_map(|word| word.strip_prefix('@')) {
        let name = word.trim_end_matches(AFTER);
        let is_file = [word, name].into_iter().any(|name| workspace.join(name).is_file());
        if !name.is_empty() && !is_file && !missing.contains(&name) {
            missing.push(name);
        }
    }
    missing
}

/// Attaches a file under this name: a picture as such, anything else as text.
fn file(path: &Path, name: &str) -> Result<Attachment, Error> {
    let bytes = read(path, name)?;
    if image::IMAGE_TYPES.contains(&image::type_of(&bytes)) {
        return picture(path);
    }
    if bytes.len() as u64 > LARGEST_TEXT {
        let message =
            format!("`{name}` has {} bytes, more than the {LARGEST_TEXT} that can be attached", bytes.len());
        return Err(Error::invalid(message).hint("name it without `@`, and the agent reads parts of it"));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        Error::invalid(format!("`{name}` is neither text nor a picture; it cannot be attached"))
    })?;
    let told = format!("`{name}` ({})", counted(text.lines().count(), "line"));
    Ok(Attachment { part: Part::text(fenced(&format!("The file `{name}`"), &text)), told })
}

/// A picture.
pub fn picture(path: &Path) -> Result<Attachment, Error> {
    let name = path.display().to_string();
    let bytes = read(path, &name)?;
    match image::type_of(&bytes) {
        mime if image::IMAGE_TYPES.contains(&mime) => {
            let told = format!("`{name}` ({mime}, {} KiB)", bytes.len().div_ceil(1024));
            Ok(Attachment { part: Part::Image(Image::new(mime, bytes)), told })
        }
        other => Err(Error::invalid(format!("`{name}` is {other} and no picture"))
            .hint(format!("models read {}", image::IMAGE_TYPES.join(", ")))),
    }
}

/// Returns piped text as a part of the message.
pub fn piped(text: &str) -> Part {
    Part::text(fenced("Standard input", text))
}

fn read(path: &Path, name: &str) -> Result<Vec<u8>, Error> {
    let unread = |error| Error::invalid(format!("`{name}` cannot be read")).because(error);
    let size = fs::metadata(path).map_err(unread)?.len();
    if size > LARGEST_PICTURE {
        return Err(Error::invalid(format!("`{name}` has {size} bytes, more than {LARGEST_PICTURE}")));
    }
    fs::read(path).map_err(unread)
}

/// A text between two lines of backticks, more than it has itself.
fn fenced(what: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{what}:\n{fence}\n{text}{end}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_there_are_attached_once() {
        let workspace = tempfile::tempdir().unwrap();
        fs::create_dir(workspace.path().join("src")).unwrap();
        fs::write(workspace.path().join("src/a.rs"), "fn a() {}\n").unwrap();
        fs::write(workspace.path().join("b.md"), "```\ncode\n```").unwrap();
        let text = "compare @src/a.rs, (@b.md) and @src/a.rs; ask @ann or a@b.md";
        let attached = named_in(text, workspace.path()).unwrap();
        let told: Vec<&str> = attached.iter().map(|one| one.told.as_str()).collect();
        assert_eq!(told, ["`src/a.rs` (1 line)"], "`(@b.md)` is no word that begins with `@`");
        assert_eq!(missing_in("see @b.md., @nope.txt, @nope.txt? and @", workspace.path()), ["nope.txt"]);
        let attached = named_in("see @b.md.", workspace.path()).unwrap();
        let expected = "The file `b.md`:\n````\n```\ncode\n```\n````";
        assert_eq!(attached[0].part, Part::text(expected), "a fence in the text does not end it");
        fs::write(workspace.path().join("raw"), [0xff_u8, 0, 1]).unwrap();
        assert!(named_in("@raw", workspace.path()).unwrap_err().to_string().contains("neither text"));
    }
}
