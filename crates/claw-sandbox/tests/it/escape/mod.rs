//! Attacks on the kernel sandbox, each made from inside of it on the real kernel.

mod files;
mod kernel;
mod network;
mod processes;
mod resources;
mod user;
