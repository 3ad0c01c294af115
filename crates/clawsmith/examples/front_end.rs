//! A front end in a page: open the application, send a message, show the events until the run has ended.
//!
//! Needs the feature `app`. A program that runs commands in the sandbox calls `clawsmith::sandbox::enter_if_asked()` first
//! in `main`.

use clawsmith::app::{Followed, SessionsOptions, Setup, private_lane};
use clawsmith::config::Surroundings;
use clawsmith::message::Part;
use clawsmith::port::Owner;
use clawsmith::store::{RunEvent, SessionEventBody, Voice};
use clawsmith::{AgentId, Asking, Caller, SessionKey};

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    // A home of its own, so that the example leaves nothing behind. Yours is `Surroundings::of_process()`.
    let home = tempfile::tempdir()?;
    let around = Surroundings {
        directory: home.path().to_owned(),
        variables: vec![("HOME".into(), home.path().into())],
    };
    let app = Setup::load(None, &around)?.open().await?;
    let session = SessionKey::new("example:1")?;
    let caller = Caller::new(AgentId::new("default")?, session.clone(), home.path().canonicalize()?);

    let lanes = vec![private_lane(&session)];
    let sessions = app.sessions(SessionsOptions { lanes, ..SessionsOptions::default() }).await?;
    let owner = Owner { tenant: caller.tenant.clone(), session };
    let mut follower = sessions.follow(owner, None).await?;
    let run = sessions.send(&caller, vec![Part::text("Hello!")], Asking::Impossible).await?;
    loop {
        match follower.next().await? {
            Followed::Piece(piece) if piece.voice == Voice::Text => print!("{}", piece.text),
            Followed::Piece(_) | Followed::Lagged => {}
            Followed::Event(event) => match event.what {
                SessionEventBody::Tool { tool, state, .. } => println!("[{tool}: {state:?}]"),
                SessionEventBody::Run { run: of, state: RunEvent::Ended { end } } if of == run => {
                    println!("\n[{}]", end.name());
                    break;
                }
                _ => {}
            },
        }
    }
    sessions.end(None).await?;
    app.close().await;
    Ok(())
}
