//! Where an action is called from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The place an invocation comes from. The entry point fixes it; a caller cannot choose it freely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Surface {
    /// The command line.
    Cli,
    /// The JSON runner: payloads on standard input.
    Json,
    /// HTTP with a bearer token.
    Http,
    /// The Model Context Protocol.
    Mcp,
    /// A same-origin browser session of an application.
    React,
    /// The development page, in a same-origin browser session.
    Dev,
    /// Tools for language models.
    AiSdk,
    /// Rust code in the same process. It cannot be named from outside, so it never comes in over a wire.
    #[serde(skip_deserializing)]
    Code,
}

impl Surface {
    /// The surfaces that an action supports unless it says otherwise.
    pub const DEFAULT: [Surface; 7] = [
        Surface::Cli,
        Surface::Json,
        Surface::Http,
        Surface::Mcp,
        Surface::React,
        Surface::Dev,
        Surface::AiSdk,
    ];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Surface::Cli => "cli",
            Surface::Json => "json",
            Surface::Http => "http",
            Surface::Mcp => "mcp",
            Surface::React => "react",
            Surface::Dev => "dev",
            Surface::AiSdk => "ai-sdk",
            Surface::Code => "code",
        }
    }

    /// Whether the runtime asks for the confirmation flag here; on the others the page asks the person first.
    pub const fn enforces_confirmation(self) -> bool {
        !matches!(self, Surface::React | Surface::Dev)
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no surface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a surface; the surfaces are cli, json, http, mcp, react, dev, ai-sdk")]
pub struct UnknownSurface(pub String);

impl FromStr for Surface {
    type Err = UnknownSurface;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Surface::DEFAULT
            .into_iter()
            .find(|surface| surface.as_str() == name)
            .ok_or_else(|| UnknownSurface(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surface_reads_back_from_its_word_and_code_cannot_be_named() {
        for surface in Surface::DEFAULT {
            assert_eq!(surface.as_str().parse(), Ok(surface));
            assert_eq!(surface.to_string(), surface.as_str());
            assert_eq!(serde_json::to_value(surface).unwrap(), surface.as_str());
        }
        assert_eq!("code".parse::<Surface>(), Err(UnknownSurface("code".into())));
        assert!(serde_json::from_value::<Surface>("code".into()).is_err());
    }
    #[test]
    fn only_a_page_that_asks_the_person_first_needs_no_confirmation_flag() {
        let [asking, others]: [Vec<Surface>; 2] = [false, true].map(|enforced| {
            Surface::DEFAULT
                .into_iter()
                .chain([Surface::Code])
                .filter(|surface| surface.enforces_confirmation() == enforced)
                .collect()
        });
        assert_eq!(asking, [Surface::React, Surface::Dev]);
        assert_eq!(others.len(), 6);
    }
}
