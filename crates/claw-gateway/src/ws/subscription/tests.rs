use super::*;
use crate::testing::Stage;

/// The frames that a client gets of a session, up to its first event.
async fn frames(stage: &Stage, follower: Follower, waiting: usize) -> Vec<Told> {
    let (sender, mut receiver) = mpsc::channel(waiting);
    let topic = Topic { session_key: Some(stage.owner.session.to_string()), ..Topic::default() };
    let task = tokio::spawn(follow(follower, stage.owner.session.clone(), topic, sender));
    // The client reads nothing until its channel is full or everything was passed on.
    while receiver.len() < waiting && !task.is_finished() {
        tokio::task::yield_now().await;
    }
    stage.event().await;
    let mut frames = Vec::new();
    while let Some(Passed::Event(told)) = receiver.recv().await {
        let is_last = told.event == "run";
        frames.push(*told);
        if is_last {
            break;
        }
    }
    task.abort();
    frames
}

#[tokio::test]
async fn a_follower_that_missed_pieces_says_so_before_the_next_one() {
    let stage = Stage::new().await;
    let frames = frames(&stage, stage.lagging().await, 1_000).await;
    assert_eq!(frames[0].event, "lagged", "{:?}", frames[0]);
    let Some(Payload::Piece(piece)) = &frames[1].payload else { panic!("{:?}", frames[1]) };
    assert!(piece.offset > 0, "{piece:?}");
    assert_eq!(frames.last().unwrap().event, "run");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_told_wherever_pieces_are_missing() {
    let stage = Stage::new().await;
    let frames = frames(&stage, stage.lagging().await, 8).await;
    let events: Vec<&str> = frames.iter().map(|frame| frame.event).collect();
    assert_eq!(events.last(), Some(&"run"), "{events:?}");
    let (mut end, mut told, mut gaps) = (0, false, 0);
    for frame in &frames {
        match &frame.payload {
            Some(Payload::Piece(piece)) => {
                assert!(piece.offset == end || told, "a gap that nobody told of: {events:?}");
                gaps += usize::from(piece.offset != end);
                (end, told) = (piece.offset + piece.text.len() as u64, false);
            }
            _ => told |= frame.event == "lagged",
        }
    }
    assert!(gaps > 0, "{events:?}");
}
