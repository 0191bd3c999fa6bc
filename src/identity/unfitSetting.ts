/** The service does not start: a setting names an issuer, or an audience, that no token can be trusted with. */
export class UnfitSetting extends Error {
  constructor(sentence: string) {
    super(sentence)
    this.name = 'UnfitSetting'
  }
}
