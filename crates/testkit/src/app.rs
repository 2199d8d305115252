//! The fixture application: one action for each thing that the vectors look at, built only on the public `runyard` crate.

mod fails;
mod gives;
mod guards;
mod takes;
mod tells;
mod waits;

use runyard::{App, Exposure, Surface};

use self::guards::{Checker, LastEnvelopes, Wrapper, crowded};

/// The application that the vectors run on.
pub fn vector_app() -> App {
    let envelopes = LastEnvelopes::default();
    let wire = [Surface::Http, Surface::Mcp, Surface::AiSdk];
    let exposure = Exposure::new().destructive("erase", wire).destructive("purge", wire);
    let crowded = crowded();
    App::new("vector-app", "The application that the vector table runs on.")
        .version(env!("CARGO_PKG_VERSION"))
        .service(waits::Attempts::default())
        .service(gives::Made::default())
        .service(envelopes.clone())
        .hook(envelopes)
        .exposure(exposure)
        .permission_checker(Checker::new(&crowded))
        .middleware(Wrapper)
        .action(crowded)
        .actions([takes::echo(), takes::order(), takes::numbers(), takes::nothing()])
        .actions(gives::actions())
        .actions(fails::actions())
        .actions(guards::actions())
        .actions([tells::tell(), tells::progress(), tells::artifacts(), tells::old_way()])
        .actions(waits::actions())
}
