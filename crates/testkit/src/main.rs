//! The fixture application as a program: `vector-app echo --json …`, `vector-app json`, `vector-app serve`.

use std::process::ExitCode;

fn main() -> ExitCode {
    runyard_testkit::vector_app().main()
}
