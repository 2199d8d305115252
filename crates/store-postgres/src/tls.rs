//! TLS to the server: rustls, always with a verified certificate.

use std::path::Path;
use std::sync::Arc;

use runyard_store::StorageError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::url::Target;

const DOING: &str = "reading the certificates for the database";

/// How connections to this database are encrypted.
pub(crate) fn connector(target: &Target) -> Result<MakeRustlsConnect, StorageError> {
    let roots = match &target.root_certificates {
        _ if target.config.get_ssl_mode() == SslMode::Disable => RootCertStore::empty(),
        Some(file) => of_file(file)?,
        None => of_the_system(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StorageError::io(DOING, error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn of_file(file: &Path) -> Result<RootCertStore, StorageError> {
    let io = |error| StorageError::io(DOING, FileError { file: file.display().to_string(), source: error });
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(io)? {
        let certificate = certificate.map_err(io)?;
        roots.add(certificate).map_err(|error| StorageError::io(DOING, error))?;
    }
    if roots.is_empty() {
        return Err(StorageError::invalid(format!("{} holds no certificate", file.display())));
    }
    Ok(roots)
}

/// What cannot be read there is left out: a server that needs it is then not trusted.
fn of_the_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let loaded = rustls_native_certs::load_native_certs();
    for error in &loaded.errors {
        tracing::warn!(%error, "a certificate of the system cannot be read");
    }
    roots.add_parsable_certificates(loaded.certs);
    roots
}

/// A file of certificates that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{file} (sslrootcert in the URL): {source}")]
struct FileError {
    file: String,
    source: rustls::pki_types::pem::Error,
}
