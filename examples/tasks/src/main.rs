//! The task list as a program: `tasks task-create --title "Buy milk"`, `tasks serve`, `tasks json`.

use std::process::ExitCode;

use runyard_example_tasks::{Tasks, app};

fn main() -> ExitCode {
    let file = std::env::var_os("TASKS_FILE").unwrap_or_else(|| "tasks.json".into());
    app(Tasks::in_file(file)).main()
}
