use super::is_transient;

#[test]
fn tells_what_may_pass_from_what_will_not() {
    for code in ["08006", "40001", "40P01", "53100", "53300", "57P01", "57P03", "57014", "25006"] {
        assert!(is_transient(code), "{code}");
    }
    for code in ["", "22021", "23505", "28P01", "3D000", "42501", "42P01", "XX001"] {
        assert!(!is_transient(code), "{code}");
    }
}
