//! Computes and writes the new content of a file.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use claw_core::port::{Change, Contents, DocumentUse, Expect, Splice, Stat, Version, WriteMode, Written};
use claw_core::redact::PLACEHOLDER;
use claw_core::text::{Encoding, Masked, Text};
use claw_core::tool::{Digest, ErrorKind, ToolError};

use super::match_placeholders::Last;
use super::restore_secrets::{Composed, compose, first_shown};
use super::seen_files::Seen;
use super::{Current, GuardedFiles, WHOLE_BYTES, absent, changed};
use crate::unified_diff::unified_diff;

/// Most diff lines that describe a write.
const DIFF_LINES: usize = 400;
/// Most diff lines that explain a refusal.
const CONFLICT_LINES: usize = 60;

/// A file before and after.
struct Rewrite<'a> {
    path: &'a str,
    target: &'a Path,
    current: Option<Current>,
    /// The file as the session has seen it; `None` if it was not text.
    before: Option<String>,
    bytes: Vec<u8>,
    after: Masked,
    /// The whole content is new.
    whole: bool,
}

impl GuardedFiles {
    pub(super) async fn splice_text(
        &self,
        path: &str,
        version: &Version,
        splices: &[Splice],
    ) -> Result<Written, ToolError> {
        let target = self.planned(path)?;
        let current = self.current(path).await?.ok_or_else(|| absent(path))?;
        if current.stat.version != *version {
            return Err(changed(path));
        }
        self.unchanged(path, &target, Some(version))?;
        let (text, masked) = self.masked(path, &current.bytes)?;
        // Hidden parts may have changed, and the positions of the changes with them.
        let viewed = self.viewed.lock().unwrap_or_else(PoisonError::into_inner).get(&target).copied();
        if viewed != Some(Digest::of_bytes(masked.text.as_bytes())) {
            return Err(changed(path));
        }
        let composed = compose(&text.text, &masked, splices, Last::Pair)?;
        let bytes = encode_as(path, &text, &current.bytes, &composed.text)?;
        let after = self.still_hidden(path, &composed)?;
        self.put(Rewrite {
            path,
            target: &target,
            current: Some(current),
            before: Some(masked.text),
            bytes,
            after,
            whole: false,
        })
        .await
    }

    pub(super) async fn write_text(
        &self,
        path: &str,
        text: &str,
        mode: WriteMode,
    ) -> Result<Written, ToolError> {
        let target = self.planned(path)?;
        let current = self.current(path).await?;
        self.unchanged(path, &target, current.as_ref().map(|current| &current.stat.version))?;
        let change = match (current, mode) {
            (None, _) => {
                let after = self.mask(path, text);
                let (before, bytes) = (Some(String::new()), text.as_bytes().to_vec());
                Rewrite { path, target: &target, current: None, before, bytes, after, whole: true }
            }
            (Some(_), WriteMode::Create) => {
                let message = format!("`{path}` exists already");
                return Err(ToolError::new(ErrorKind::Conflict, message)
                    .try_instead("choose another name, or read it and then overwrite or edit it"));
            }
            (Some(current), WriteMode::Overwrite) => self.overwrite(path, &target, current, text).await?,
            (Some(current), WriteMode::Append) => self.append(path, &target, current, text)?,
        };
        self.put(change).await
    }

    async fn overwrite<'a>(
        &self,
        path: &'a str,
        target: &'a Path,
        current: Current,
        text: &str,
    ) -> Result<Rewrite<'a>, ToolError> {
        let old = self.masked(path, &current.bytes).ok();
        let in_prompt = self.bridge.document(&self.origin.caller, target) == Some(DocumentUse::InPrompt);
        // Files that each prompt shows need not be read.
        let shown = || Seen { version: current.stat.version.clone(), redacted: true, text: None };
        let seen = if in_prompt { Some(shown()) } else { self.seen(target).await };
        let Some(seen) = seen else {
            let message = format!("`{path}` exists, and this session has not read it");
            return Err(ToolError::new(ErrorKind::Conflict, message)
                .try_instead("read it first, then overwrite or edit it"));
        };
        let now = old.as_ref().map(|(_, masked)| masked);
        if seen.version != current.stat.version {
            return Err(stale(path, &seen, now));
        }
        let Some((old, masked)) = old else {
            let after = self.mask(path, text);
            let bytes = text.as_bytes().to_vec();
            return Ok(Rewrite {
                path,
                target,
                current: Some(current),
                before: None,
                bytes,
                after,
                whole: true,
            });
        };
        // A placeholder that was seen and is none now would be written over the text behind it.
        let other = seen.text.as_deref().is_some_and(|text| text != masked.text);
        if text.contains(PLACEHOLDER) && (other || (seen.redacted && masked.marks.is_empty())) {
            return Err(stale(path, &seen, Some(&masked)));
        }
        let text = if old.bom { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        let whole = Splice { range: 0..masked.text.len(), text: with_line_ends_of(&old.text, text) };
        let composed = compose(&old.text, &masked, &[whole], Last::Doubt)?;
        let bytes = match encode_as(path, &old, &current.bytes, &composed.text) {
            Ok(bytes) => bytes,
            // Nothing of the file is left, so another encoding may be used.
            Err(_) if composed.kept.is_empty() => composed.text.as_bytes().to_vec(),
            Err(error) => return Err(error),
        };
        let after = self.still_hidden(path, &composed)?;
        Ok(Rewrite {
            path,
            target,
            current: Some(current),
            before: Some(masked.text),
            bytes,
            after,
            whole: true,
        })
    }

    fn append<'a>(
        &self,
        path: &'a str,
        target: &'a Path,
        current: Current,
        text: &str,
    ) -> Result<Rewrite<'a>, ToolError> {
        let (old, masked) = self.masked(path, &current.bytes)?;
        let end = masked.text.len();
        let more = Splice { range: end..end, text: with_line_ends_of(&old.text, text) };
        let composed = compose(&old.text, &masked, &[more], Last::Doubt)?;
        let bytes = encode_as(path, &old, &current.bytes, &composed.text)?;
        let after = self.still_hidden(path, &composed)?;
        Ok(Rewrite {
            path,
            target,
            current: Some(current),
            before: Some(masked.text),
            bytes,
            after,
            whole: false,
        })
    }

    /// Masks the new text. A secret that was hidden must stay hidden: a removed neighbour may be what
    /// identified it as one.
    fn still_hidden(&self, path: &str, composed: &Composed) -> Result<Masked, ToolError> {
        let masked = self.mask(path, &composed.text);
        let Some(shown) = first_shown(&composed.kept, &masked) else { return Ok(masked) };
        let line = 1 + composed.text[..shown.start].matches('\n').count();
        let message = format!(
            "the change would show a hidden value of `{path}` (line {line} of the new text); nothing was written"
        );
        Err(ToolError::new(ErrorKind::Forbidden, message)
            .try_instead("leave the text around the hidden value as it is, or remove its whole line"))
    }

    /// Writes a file if it is unchanged, after the change is journaled.
    async fn put(&self, change: Rewrite<'_>) -> Result<Written, ToolError> {
        let Rewrite { path, target, current, before, bytes, after, whole } = change;
        if bytes.len() as u64 > WHOLE_BYTES {
            let message =
                format!("`{path}` would have {} bytes, and the maximum is {WHOLE_BYTES}", bytes.len());
            return Err(ToolError::invalid(message).try_instead("write less at once, to several files"));
        }
        let stat = match &current {
            Some(current) if current.bytes == bytes => current.stat.clone(),
            _ => self.put_bytes(path, target, current.as_ref(), &bytes).await?,
        };
        let is_changed = current.as_ref().is_none_or(|current| current.bytes != bytes);
        let diff = match &before {
            Some(before) if is_changed && *before == after.text => {
                "(a hidden value was changed)\n".to_owned()
            }
            Some(before) => unified_diff(path, before, &after.text, DIFF_LINES),
            None => format!(
                "({} bytes that were not text were replaced)\n",
                current.as_ref().map_or(0, |c| c.bytes.len())
            ),
        };
        let version = stat.version;
        // A change of one part does not mean that the rest was seen.
        let knows = match (&current, whole) {
            (Some(current), false) => {
                self.seen(target).await.is_some_and(|seen| seen.version == current.stat.version)
            }
            _ => true,
        };
        self.written
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(target.to_owned(), version.clone());
        if knows {
            let redacted = !after.marks.is_empty();
            let text = Some(Arc::from(after.text));
            self.saw(target, Seen { version: version.clone(), redacted, text }).await;
        }
        Ok(Written { created: current.is_none(), size: bytes.len() as u64, diff, version })
    }

    async fn put_bytes(
        &self,
        path: &str,
        target: &Path,
        current: Option<&Current>,
        bytes: &[u8],
    ) -> Result<Stat, ToolError> {
        self.grant.live()?;
        let caller = &self.origin.caller;
        let journal = self.origin.executor.registry().world().undo.clone();
        let place = target.to_string_lossy();
        let sandbox = self.bridge.sandbox(caller, target);
        let mode = current.and_then(|current| current.stat.mode);
        let change = Change {
            caller,
            call: self.origin.call,
            run: self.grant.run,
            tool: &self.origin.tool,
            place: &place,
            sandbox: sandbox.as_deref(),
            shown: path,
            before: current.map(|current| Contents { bytes: &current.bytes, mode }),
            after: Some(Contents { bytes, mode }),
        };
        let recorded = match &journal {
            Some(journal) => Some((journal, journal.record(&change).await?)),
            None => None,
        };
        let expect = current.map_or(Expect::Absent, |current| Expect::Version(&current.stat.version));
        let written = self.bridge.write(&self.place(expect), path, bytes).await;
        if let (Err(_), Some((journal, id))) = (&written, recorded)
            && let Err(error) = journal.withdraw(&caller.tenant, id).await
        {
            tracing::warn!(error = error.for_log(), "a change that was not made stays in the undo journal");
        }
        written
    }
}

/// The bytes of a text in the file's encoding, provided that unchanged parts stay the same.
fn encode_as(path: &str, old: &Text, bytes: &[u8], text: &str) -> Result<Vec<u8>, ToolError> {
    let name = old.encoding.name();
    let exact = old.encoding == Encoding::Utf8 || old.encode(&old.text).is_ok_and(|again| again == bytes);
    if !exact {
        let message =
            format!("`{path}` seems to be {name}, and cannot be changed without damage to the rest");
        return Err(ToolError::invalid(message).try_instead("overwrite the whole file"));
    }
    old.encode(text).map_err(|lacking| {
        let message =
            format!("`{path}` is {name}, which cannot encode `{lacking}` (U+{:04X})", u32::from(lacking));
        ToolError::invalid(message).try_instead("use other characters, or overwrite the whole file")
    })
}

/// The error for a file that has changed since this session last saw it.
fn stale(path: &str, seen: &Seen, now: Option<&Masked>) -> ToolError {
    let mut message = format!("`{path}` differs from what this session last saw");
    if let (Some(seen), Some(now)) = (&seen.text, now) {
        message.push_str(":\n");
        message.push_str(&unified_diff(path, seen, &now.text, CONFLICT_LINES));
    }
    ToolError::new(ErrorKind::Conflict, message).try_instead("read it again before you change it")
}

/// The new text with the line ends of the old one, if those are all CRLF: models write LF whatever they read.
fn with_line_ends_of(old: &str, new: &str) -> String {
    let (all, crlf) = (old.matches('\n').count(), old.matches("\r\n").count());
    if crlf > 0 && crlf == all && !new.contains('\r') { new.replace('\n', "\r\n") } else { new.to_owned() }
}
