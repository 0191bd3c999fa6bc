import { FILES, MANIFEST } from './format.ts'

export const readmeText = (tenant: string | null): string => `# Evidence of a payment ledger

${tenant === null ? 'All events of the log' : `The events of the tenant ${JSON.stringify(tenant)}`} up to a signed head.
Verify with the ledger's own command, which needs no service: \`npm run -s ledger -- verify <this folder>\`, with
\`--key <public key file>\` and \`--heads <file of heads>\` that you got from elsewhere. Without them the export proves only that it
agrees with itself and with the keys that it brings. Give \`--key\` once for each key that signed heads; \`--heads\` without it is a
finding. Copy the heads before you export: heads that were signed after it lie beyond its
end, which is a finding unless you name the time of the export with \`--as-of\`.
${tenant === null ? '' : '\nThe export of one tenant proves each event that it has. It does not prove that it has all of them: a leaf says nothing of its tenant.\n'}
| File | Lines |
|---|---|
| ${FILES.events} | one event a line, in the order of the log |
| ${FILES.leaves} | one leaf of the Merkle tree a line: \`index\` from 0, \`leaf\` (hexadecimal), \`id\` and \`position\` of its event; \`withheld\` instead of them for the secret of the log (\`secret-…\`)${tenant === null ? '' : ', for API keys (`apiKey-…`), and for events of other tenants'} |
| ${FILES.heads} | one signed head a line |
| ${MANIFEST} | the head that the export ends with, the public keys, and the SHA-256 of each file |

All files are UTF-8, each line ends with one line feed (0x0A), and each line is canonical JSON (RFC 8785).

## An event

| Member | Meaning |
|---|---|
| \`v\` | version of this form: 1 |
| \`id\`, \`stream\`, \`type\` | id (UUID), stream and type of the event |
| \`revision\`, \`position\` | its number in its stream, from 0, and its place in the log (a byte offset, not a count), as decimal texts |
| \`created\` | the time of the event store, RFC 3339 in UTC, in units of 100 ns |
| \`content_type\` | as the event store has it |
| \`data\`, \`metadata\` | the JSON values; amounts are integers in minor units of their currency |
| \`data_hex\`, \`metadata_hex\` | instead of them the bytes in hexadecimal, where they are not JSON that can be written again byte by byte |

Every event of streams whose names do not begin with \`$\` is a leaf: streams of the event store itself (\`$…\`, and \`$$…\` with the
settings of streams) are not signed. A deleted stream leaves an event \`$streamDeleted\`, which is.

## The tree

RFC 6962, section 2.1, with SHA-256: a leaf is SHA-256(0x00, the bytes of the event's line without its line feed), a node is
SHA-256(0x01, left, right). The root over the first \`tree_size\` leaves is the \`root\` of the head.

    # the leaf of the first event
    (printf '\\000'; head -n 1 ${FILES.events} | tr -d '\\n') | sha256sum

## A head

\`tree_size\`, \`root\`, \`position\` of the last event, \`time\`, \`previous_size\`, \`log\`, \`generation\`, \`key\`. \`signature\` is Ed25519 (base64)
over the canonical JSON of the head without the members \`consistency\` and \`signature\`. \`key\` is the beginning of the SHA-256 of the
public key (SubjectPublicKeyInfo, DER). \`consistency\` proves that the tree of \`previous_size\` leaves is the beginning of this one
(RFC 9162, section 2.1.4). A \`generation\` above 1 begins with a head that has \`restart\`: the event store had lost events, an
operator accepted that, \`accepted\` says who and why, and \`audit_record\` is the event of it. The heads of a generation before it, from \`kept_size\` on, have
no leaves any more.

## Erased personal data

Events have tokens instead of references and names that can be erased, so that an erasure changes no event and no proof.
`
