//! (skeleton)

/// Runs the program.
pub fn main() -> std::process::ExitCode {
    let args: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    match args.as_slice() {
        [verb, state_flag, state_dir, name_flag, name]
            if verb == "runner" && state_flag == "--state" && name_flag == "--name" =>
        {
            crate::runner::serve(std::path::Path::new(state_dir), &name.to_string_lossy())
        }
        _ => std::process::ExitCode::SUCCESS,
    }
}
