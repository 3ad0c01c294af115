//! The road from end to end: three kinds of tools through all eight steps, and what attackers try.

mod approvals;
mod attack;
mod attack_more;
mod budget;
mod guards;
mod kit;
mod output;
mod registry;
mod road;
