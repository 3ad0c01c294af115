//! Approvals put to the person at the terminal.

use claw_core::port::InputForm;
use claw_core::store::Approval;
use claw_terminal::{AnswerScope, ApprovalAnswer, ApprovalPrompt, AskedApproval, PromptInput, can_ask, tell};
use clawsmith::app::question::{AskedFor, Question, StoredApproval};
use clawsmith::app::{App, InputValues, RuleFor, Verdict};

/// Prints where an approval can be answered that nobody here can answer.
pub(crate) fn announce(question: &Question, elsewhere: &[String]) {
    let Question { tool, id, .. } = question;
    tell(format_args!("`{tool}` waits for approval `{id}`, {} s at most", question.wait_secs()));
    for (i, command) in elsewhere.iter().enumerate() {
        tell(format_args!("  {}: {command}", if i == 0 { "try" } else { "and" }));
    }
}

/// Puts a question in the store to the person at the terminal, or prints where it can be answered.
pub(crate) async fn put(app: &App, approval: Approval, by: String) {
    let approval = StoredApproval::new(app, approval, by);
    let question = approval.question();
    match can_ask() {
        true => ask_person(&approval, question).await,
        false => announce(&question, &question.elsewhere()),
    }
}

/// Asks the person at the terminal. A question that is over before there is an answer (answered elsewhere, expired,
/// withdrawn) gives the terminal back at once, with what was typed and not yet read.
pub(crate) async fn ask_person(approval: &dyn AskedFor, question: Question) {
    let mut asked = AskedApproval::put(prompt(&question), approval.checker());
    let said = loop {
        tokio::select! {
            biased;
            said = asked.answer() => match said {
                Some(said) => break said,
                None => return,
            },
            () = tokio::time::sleep(approval.look_after()) => {}
        }
        if let Some(how) = approval.ended(&question).await {
            asked.withdraw().await;
            return tell(format_args!("\n{how}"));
        }
    };
    let verdict = verdict(said, &question);
    if let Err(error) = approval.answer(&question, verdict).await {
        match approval.ended(&question).await {
            Some(how) => tell(format_args!("the answer came too late: {how}")),
            None => tell(format_args!("not answered: {error}")),
        }
    }
}

fn prompt(question: &Question) -> ApprovalPrompt {
    ApprovalPrompt {
        tool: question.tool.to_string(),
        effects: question.effects.to_string(),
        reason: question.reason.clone(),
        summary: question.summary.clone(),
        rules: question.offered.iter().map(|(_, text)| text.clone()).collect(),
        wait_secs: question.wait_secs(),
        input: question.input.as_ref().map(|request| match &request.form {
            InputForm::Form { schema } => PromptInput::Form(schema.clone()),
            InputForm::Url { .. } => PromptInput::Page,
        }),
    }
}

fn verdict(said: ApprovalAnswer, question: &Question) -> Verdict {
    match said {
        ApprovalAnswer::No(reason) => Verdict::Deny { reason },
        ApprovalAnswer::Once => Verdict::Once,
        ApprovalAnswer::Always { scope, rule } => Verdict::Always {
            scope: match scope {
                AnswerScope::Session => RuleFor::Session,
                AnswerScope::Agent => RuleFor::Agent,
            },
            lasts: None,
            width: question.offered.get(rule).map(|(width, _)| *width),
        },
        ApprovalAnswer::Values(values) => Verdict::Values(InputValues { values, allow_secrets: false }),
        ApprovalAnswer::Dismissed => Verdict::Dismiss,
    }
}
