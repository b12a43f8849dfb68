// The search runs in a worker, and a browser starts none for pages that were opened from a folder.
// There a hidden frame stands in for it. The theme's search looks for a worker of this name.
if (location.protocol === "file:") {
  window.IFrameWorker = class IFrameWorker extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      this.ready = new Promise(resolve => {
        const start = () => {
          this.inner = frame.contentWindow
          this.inner.postMessage = data =>
            this.dispatchEvent(new MessageEvent("message", { data }))
          const script = this.inner.document.createElement("script")
          script.src = new URL(url, location.href)
          script.addEventListener("load", resolve)
          this.inner.document.body.append(script)
        }
        frame.addEventListener("load", start, { once: true })
      })
      document.body.append(frame)
    }

    // What is sent before the script has run waits for it, as with a worker.
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
  window.Worker = window.IFrameWorker
}
