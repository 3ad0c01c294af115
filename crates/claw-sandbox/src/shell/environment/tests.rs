use super::super::search_path::PATH;
use super::*;

#[test]
fn only_listed_and_added_variables_are_there() {
    let surroundings = |name: &str| match name {
        "TZ" => Some("Europe/Paris".to_owned()),
        "LC_ALL" | "LANGUAGE" | "LC_CTYPE" | "LC_MESSAGES" | "LANG" | "TERM" | "COLORTERM" | "NO_COLOR" => {
            None
        }
        other => panic!("`{other}` was looked at"),
    };
    let added = [("CI".to_owned(), "1".to_owned()), ("TERM".to_owned(), "xterm".to_owned())];
    let all = environment(surroundings, Path::new("/w"), &added);
    let names: Vec<_> = all.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let path = format!("PATH={PATH}");
    assert_eq!(names, ["CI=1", "HOME=/w", "LANG=C.UTF-8", &path, "TERM=xterm", "TZ=Europe/Paris"]);
}
