//! The core driven by a simulated world on virtual time: no process, no file, no sleep.

mod behaviours;
mod golden;
mod numbered;
mod properties;
mod setup;
mod stops;
mod world;
