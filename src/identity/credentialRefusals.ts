/** The refusals of tokens: problem codes, except `keys_unavailable`, which is a 503 `dependency_unavailable`. */
export type TokenRefusal = 'unauthenticated' | 'token_invalid' | 'token_expired' | 'keys_unavailable'

/** The fault of a token, for logs and audit. The caller learns at most the part of the token that is at fault. */
export type TokenFault =
  | 'missing'
  | 'oversize'
  | 'not_three_segments'
  | 'not_canonical_base64url'
  | 'not_json_object'
  | 'header_not_allowed'
  | 'typ_not_access_token'
  | 'alg_not_allowed'
  | 'kid_malformed'
  | 'iss_mismatch'
  | 'aud_mismatch'
  | 'sub_malformed'
  | 'client_id_malformed'
  | 'jti_malformed'
  | 'tenant_malformed'
  | 'scope_malformed'
  | 'sender_constrained'
  | 'exp_malformed'
  | 'iat_malformed'
  | 'iat_in_future'
  | 'nbf_malformed'
  | 'not_yet_valid'
  | 'lifetime_not_allowed'
  | 'expired'
  | 'key_unknown'
  | 'key_unfit'
  | 'signature_invalid'
  | 'revoked'
  | 'keys_unreachable'

export type Refused = { readonly refused: TokenRefusal; readonly fault: TokenFault }

/** The refusal that a fault of a token leads to. */
export const refuse = (fault: TokenFault): Refused => {
  if (fault === 'missing') return { refused: 'unauthenticated', fault }
  if (fault === 'expired') return { refused: 'token_expired', fault }
  if (fault === 'keys_unreachable') return { refused: 'keys_unavailable', fault }
  return { refused: 'token_invalid', fault }
}

/** The fault of an API key, for logs and audit only. */
export type KeyFault =
  | 'key_malformed'
  | 'key_checksum_wrong'
  | 'key_environment_wrong'
  | 'key_unissued'
  | 'key_secret_wrong'
  | 'key_rotated_out'
  | 'key_expired'
  | 'key_revoked'
  | 'key_unreadable'

export type KeyRefused = { readonly refused: 'api_key_invalid' | 'keys_unavailable'; readonly fault: KeyFault }

export const refuseKey = (fault: KeyFault): KeyRefused => ({
  refused: fault === 'key_unreadable' ? 'keys_unavailable' : 'api_key_invalid',
  fault,
})
