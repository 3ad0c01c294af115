use super::*;

#[test]
fn refuses_the_home_the_system_and_our_own_directories() {
    let own = vec![PathBuf::from("/home/ann/.local/share/clawsmith")];
    let grantable = Grantable { home: Some(PathBuf::from("/home/ann")), own };
    for refused in
        ["/", "/home", "/home/ann", "/home/ann/.local", "/home/ann/.local/share/clawsmith/x", "/etc"]
    {
        assert!(grantable.refusal(Path::new(refused)).is_some(), "{refused}");
    }
    for granted in ["/home/ann/src", "/home/bob", "/srv/data", "/usr/share/doc", "/etc/nginx"] {
        assert_eq!(grantable.refusal(Path::new(granted)), None, "{granted}");
    }
}
