//! Providers behind TLS.

use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use runyard_domain::Wire;
use runyard_llm::http::Roots;
use rustls::pki_types::PrivateKeyDer;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::harness::*;
use crate::gateway::Gateway;
use crate::gateway::limits::Limits;

/// Serves one connection behind a certificate for this name; gives its port, who vouches for it, and what it sees.
async fn provider(name: &str, steps: Vec<Step>) -> (u16, RootCertStore, tokio::task::JoinHandle<Vec<Seen>>) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        match TlsAcceptor::from(Arc::new(config)).accept(stream).await {
            Ok(stream) => play_on(stream, steps).await,
            Err(_) => Vec::new(),
        }
    });
    (port, roots, seen)
}

fn steps() -> Vec<Step> {
    vec![stream_head(), sent(&chunks(&["data: {}\n\n"])), sent("0\r\n\r\n")]
}

#[tokio::test]
async fn b12_a_provider_with_a_trusted_certificate_gets_the_key_over_tls() {
    let (port, roots, seen) = provider("localhost", steps()).await;
    let gateway = Gateway::with(Limits::default(), Roots::These(roots));
    let lease = gateway.open(pass(&format!("https://localhost:{port}/v1"), Wire::Responses)).await.unwrap();
    let reply = ask(&lease, "{}").await;
    assert_eq!((reply.status, reply.body.as_str(), reply.whole), (200, "data: {}\n\n", true));
    assert!(seen.await.unwrap()[0].head.contains(&KEY.to_lowercase()));
}

#[tokio::test]
async fn b12_a_provider_whom_nobody_vouches_for_or_of_another_name_never_gets_the_key() {
    let (_, others, _) = provider("localhost", Vec::new()).await;
    for name in ["localhost", "example.com"] {
        let (port, own, seen) = provider(name, steps()).await;
        let roots = if name == "localhost" { others.clone() } else { own };
        let gateway = Gateway::with(Limits::default(), Roots::These(roots));
        let lease =
            gateway.open(pass(&format!("https://localhost:{port}/v1"), Wire::Responses)).await.unwrap();
        let reply = ask(&lease, "{}").await;
        assert_eq!(reply.code(), (502, "provider_unreachable".to_owned()), "{name}");
        assert!(reply.body.contains("certificate"), "{}", reply.body);
        assert_eq!(seen.await.unwrap(), [], "{name}");
    }
}
