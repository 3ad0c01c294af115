//! Skills in the prompt: a few, in a fixed order, within a budget. The rest is found by searching.

use claw_core::skill::SkillCard;

/// The longest description in the prompt, in characters.
const DESCRIPTION: usize = 200;

const ABOUT: &str = "\
A skill is a set of instructions for one kind of job. When one fits what you are asked, take it up with `use_skill` before \
you begin, and follow it.";

/// Returns the section about skills; empty if there are none. Earlier tiers are chosen first; skills that do
/// not fit in `budget` tokens are only counted. The chosen ones are sorted by name.
pub(crate) fn section(skills: &[SkillCard], budget: usize) -> String {
    let mut left = budget.saturating_mul(4);
    let mut lines: Vec<(&str, String)> = Vec::new();
    for skill in skills {
        let line = format!("\n- `{}`: {}", skill.name, shortened(&skill.description));
        if line.len() > left {
            break;
        }
        left -= line.len();
        lines.push((&skill.name, line));
    }
    lines.sort();
    let more = skills.len() - lines.len();
    let listed: String = lines.into_iter().map(|(_, line)| line).collect();
    let more = match (listed.is_empty(), more) {
        (true, 0) => return String::new(),
        (_, 0) => String::new(),
        (true, count) => format!("\nThere are {count}; find them with `skill_search`."),
        (false, count) => format!("\nThere are {count} more; find them with `skill_search`."),
    };
    format!("\n\n## Skills\n\n{ABOUT}\n{listed}{more}")
}

/// Returns a description on one line, cut if it is too long.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= DESCRIPTION {
        return line;
    }
    let cut: String = line.chars().take(DESCRIPTION).collect();
    format!("{}...", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use claw_core::skill::{SkillState, SkillTier};

    use super::*;

    fn card(name: &str, description: &str) -> SkillCard {
        let (name, description) = (name.to_owned(), description.to_owned());
        let (tier, source, digest) = (SkillTier::Store, String::new(), None);
        SkillCard { name, description, tier, source, digest, state: SkillState::Usable }
    }

    #[test]
    fn tells_what_fits_in_order_of_names_and_counts_the_rest() {
        let skills = [card("zeta", "First\n tier."), card("alpha", "Second."), card("mid", "Third.")];
        assert_eq!(section(&[], 100), "");
        let all = section(&skills, 100);
        let listed: Vec<_> = all.lines().filter(|line| line.starts_with('-')).collect();
        assert_eq!(listed, ["- `alpha`: Second.", "- `mid`: Third.", "- `zeta`: First tier."]);
        assert!(!all.contains("more"), "{all}");
        let few = section(&skills, 8);
        assert!(
            few.contains("`zeta`") && !few.contains("`alpha`") && few.contains("There are 2 more"),
            "{few}"
        );
        assert!(section(&skills, 0).contains("There are 3; find them"));
    }

    #[test]
    fn a_long_description_is_cut() {
        let long = section(&[card("x", &"ä ".repeat(400))], 1000);
        assert!(long.ends_with("..."), "{long}");
        assert!(long.len() < 900);
    }
}
