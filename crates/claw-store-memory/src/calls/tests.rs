use super::*;

#[test]
fn refuses_to_take_a_forgotten_call_for_a_fresh_one() {
    let ids: Vec<_> = (0..4).map(|_| CallId::new()).collect();
    let mut calls = Calls::new(2);
    calls.record(ids[1], Outcome::Unknown);
    calls.record(ids[2], Outcome::Done);
    assert_eq!(calls.known(ids[0]), Known::Fresh, "nothing is forgotten yet");
    calls.record(ids[3], Outcome::Unknown);
    assert_eq!(calls.known(ids[0]), Known::Forgotten);
    assert_eq!(calls.known(ids[1]), Known::Forgotten);
    assert_eq!(calls.known(ids[2]), Known::Begun(Outcome::Done));
    assert_eq!(calls.known(CallId::new()), Known::Fresh);
}
