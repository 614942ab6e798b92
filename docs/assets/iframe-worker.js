// Browsers start no worker for a page that was opened from a folder. There the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.scope = frame.contentWindow
      this.scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = frame.contentDocument.createElement("script")
      script.src = new URL(url, location)
      script.onload = () => {
        this.ready = true
        this.waiting.splice(0).forEach(data => this.postMessage(data))
      }
      frame.contentDocument.body.append(script)
    }

    postMessage(data) {
      if (this.ready) this.scope.dispatchEvent(new MessageEvent("message", { data }))
      else this.waiting.push(data)
    }
  }
}
