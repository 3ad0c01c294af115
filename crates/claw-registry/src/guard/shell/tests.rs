use claw_core::tool::Effects;

use super::*;

#[test]
fn a_program_with_credentials_sees_nothing_that_commands_wrote_and_runs_none_of_it() {
    let root = |path: &str, access| Root { path: PathBuf::from(path), access };
    let scope = Scope {
        roots: vec![
            root("/project", Access::Write),
            root("/granted", Access::Write),
            root("/read", Access::Read),
        ],
        covered: vec![PathBuf::from("/granted"), PathBuf::from("/read")],
        ..Scope::default()
    };
    let plan = Plan { effects: Effects::ALL, asks: Vec::new(), given: None };
    let context = RunContext {
        readable: vec!["/skill".into()],
        granted: granted(&scope),
        home: Some(CommandHome { key: "me".into(), write: true }),
        changeable: changeable(&scope, &plan),
        ..RunContext::new("/project", "key")
    };
    // In a mode that only reads, too: another call writes.
    for context in [context.clone(), reading(context)] {
        let login = for_login(context);
        assert!(login.granted.is_empty() && login.readable.is_empty() && login.home.is_none(), "{login:?}");
        assert_eq!(login.changeable, [PathBuf::from("/project"), PathBuf::from("/granted")]);
    }
}
