//! The skills of this program.

use claw_core::skill::{SKILL_FILE, SkillFile, SkillPackage};

use super::{SkillError, package};

/// Every built-in skill, by name.
const BUILT_IN: [(&str, &str); 3] = [
    ("ai-multimodal", include_str!("../../skills/ai-multimodal/SKILL.md")),
    ("review-change", include_str!("../../skills/review-change/SKILL.md")),
    ("skill-writer", include_str!("../../skills/skill-writer/SKILL.md")),
];

/// Parses all built-in skills.
pub(super) fn all() -> Result<Vec<SkillPackage>, SkillError> {
    let read = |(name, text): &(&str, &str)| {
        let main =
            SkillFile { path: SKILL_FILE.to_owned(), executable: false, bytes: text.as_bytes().to_vec() };
        package::from_files(name, vec![main])
    };
    BUILT_IN.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn they_are_skills() {
        let all = super::all().unwrap();
        assert!(all.is_sorted_by(|a, b| a.manifest.name < b.manifest.name));
        for skill in all {
            assert!(skill.body.len() > 400, "{}", skill.manifest.name);
        }
    }
}
