//! The examples run, not only compile.

#[path = "../examples/agent_loop.rs"]
mod agent_loop;
#[cfg(feature = "app")]
#[path = "../examples/agent_with_model.rs"]
mod agent_with_model;
#[path = "../examples/any_tool.rs"]
mod any_tool;
#[path = "../examples/approvals.rs"]
mod approvals;
#[cfg(all(feature = "sandbox", feature = "store"))]
#[path = "../examples/background.rs"]
mod background;
#[cfg(feature = "sandbox")]
#[path = "../examples/commands.rs"]
mod commands;
#[cfg(feature = "app")]
#[path = "../examples/front_end.rs"]
mod front_end;
#[path = "../examples/lazy_factory.rs"]
mod lazy_factory;
#[path = "../examples/limits.rs"]
mod limits;
#[path = "../examples/own_files.rs"]
mod own_files;
#[path = "../examples/plans.rs"]
mod plans;
#[path = "../examples/policy_explained.rs"]
mod policy_explained;
#[path = "../examples/progress.rs"]
mod progress;
#[path = "../examples/register_tool.rs"]
mod register_tool;
#[path = "../examples/schemas.rs"]
mod schemas;
#[cfg(feature = "store")]
#[path = "../examples/store_files.rs"]
mod store_files;

/// Runs before the test harness does: this binary is also its own sandbox helper, which must have one thread.
#[cfg(feature = "sandbox")]
#[expect(unsafe_code, reason = "the only way to run before the harness's `main`; it takes nothing")]
#[used]
#[unsafe(link_section = ".init_array")]
static FIRST: extern "C" fn() = {
    extern "C" fn first() {
        clawsmith::sandbox::enter_if_asked();
    }
    first
};

#[test]
fn agent_loop_runs() {
    agent_loop::main().unwrap();
}

#[cfg(feature = "app")]
#[test]
fn agent_with_model_runs() {
    agent_with_model::main().unwrap();
}

#[test]
fn any_tool_runs() {
    any_tool::main().unwrap();
}

#[cfg(all(feature = "sandbox", feature = "store"))]
#[test]
fn background_runs() {
    background::main().unwrap();
}

#[test]
fn limits_runs() {
    limits::main().unwrap();
}

#[test]
fn approvals_runs() {
    approvals::main().unwrap();
}

#[cfg(feature = "sandbox")]
#[test]
fn commands_runs() {
    commands::main().unwrap();
}

#[test]
fn own_files_runs() {
    own_files::main().unwrap();
}

#[test]
fn plans_runs() {
    plans::main().unwrap();
}

#[test]
fn progress_runs() {
    progress::main().unwrap();
}

#[cfg(feature = "app")]
#[test]
fn front_end_runs() {
    front_end::main().unwrap();
}

#[test]
fn lazy_factory_runs() {
    lazy_factory::main().unwrap();
}

#[test]
fn policy_explained_runs() {
    policy_explained::main().unwrap();
}

#[test]
fn register_tool_runs() {
    register_tool::main().unwrap();
}

#[test]
fn schemas_runs() {
    schemas::main().unwrap();
}

#[cfg(feature = "store")]
#[test]
fn store_files_runs() {
    store_files::main().unwrap();
}
