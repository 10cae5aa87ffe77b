#!/bin/sh
# Makes the certificate of the tests, in this folder: localhost.pem is self-signed, for localhost and 127.0.0.1, valid from
# 2020 to 2120; localhost.key is its key, and other.key is the key of nothing. The keys are public, and worth nothing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$(mktemp -d)"
for key in localhost other; do
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$here/$key.key"
done
openssl req -new -key "$here/localhost.key" -subj /CN=localhost -out request
touch index
echo 01 > serial
# The certificate is not that of an authority: clients refuse an authority as a server.
cat > settings <<'END'
[ca]
default_ca = own
[own]
database = index
serial = serial
new_certs_dir = .
policy = any
default_md = sha256
[any]
commonName = supplied
[ext]
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:localhost, IP:127.0.0.1
extendedKeyUsage = serverAuth
END
openssl ca -config settings -extensions ext -selfsign -keyfile "$here/localhost.key" -in request -notext -batch \
    -startdate 20200101000000Z -enddate 21200101000000Z -out "$here/localhost.pem"
